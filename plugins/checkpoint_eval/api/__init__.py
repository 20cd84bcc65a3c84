"""The REST API under ``/checkpoint-eval/api/v1``: an app that Airflow's API server mounts, behind Airflow's own auth.

`app.build_app` makes it; each route is a few lines over the library. Nothing here computes a number.
"""
