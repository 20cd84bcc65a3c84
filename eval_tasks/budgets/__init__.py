"""Plans -> forecasts, runs -> what they cost, budgets -> whether another run may start. Health is never refused."""

from eval_tasks.budgets.forecasting import account, forecast
from eval_tasks.budgets.limits import BudgetLine, budget_lines, reserve

__all__ = ["BudgetLine", "account", "budget_lines", "forecast", "reserve"]
