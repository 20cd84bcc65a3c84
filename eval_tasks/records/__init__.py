"""The records that steps exchange: frozen, keyword-only, JSON in and out."""

from eval_tasks.records.benchmark import (
    BenchmarkVersion,
    DataSource,
    FewShot,
    PromptTemplate,
    ReasoningBlock,
    Sampling,
    ScorerRef,
    Suite,
    SuiteEntry,
)
from eval_tasks.records.checkpoint import Checkpoint, CheckpointFile, Landing
from eval_tasks.records.codec import from_json, to_json
from eval_tasks.records.comparison import Comparison, DecisionRule, PairedTest
from eval_tasks.records.contamination import CorpusFile, CorpusFormat, CorpusManifest, CorpusPiece, Scan, ShardHits
from eval_tasks.records.cost import Cost, CostEntry
from eval_tasks.records.determinism import (
    Baseline,
    Block,
    Clearing,
    ComputedTwice,
    Night,
    RowDifference,
    RowsComparison,
    SentinelCheck,
    SentinelReport,
)
from eval_tasks.records.engine import EndpointConfig, EngineConfig, EngineTuning, Environment, ImportedRows
from eval_tasks.records.grader import EndpointAccess, Judge, Judging
from eval_tasks.records.health import CurvePoint, HealthFinding, HealthLook, LossCurve, MeasuredNoise
from eval_tasks.records.item import Item, Request, Response, Sample, Score
from eval_tasks.records.item_response import (
    Ability,
    AbilityDifference,
    CalibratedItem,
    Calibration,
    CalibrationRun,
    ItemReport,
)
from eval_tasks.records.measurement import Companion, Measurement, WithinItem
from eval_tasks.records.plan import Plan, PlannedBatch, PlannedShard
from eval_tasks.records.rerun import RerunComparison, RerunDifference
from eval_tasks.records.resolution import PastPairs, PlannedResolution
from eval_tasks.records.run import (
    NO_TRAINING_RUN,
    Alert,
    ContractReport,
    ContractResult,
    Excursion,
    GuardReport,
    Run,
    RunRequest,
    SampleOutput,
)
from eval_tasks.records.seed_study import Scale, SeedStudy, StudiedBenchmark
from eval_tasks.records.selection import BenchmarkSelection, Candidate, Confirmation, Selection
from eval_tasks.records.sensitivity import Sensitivity, SensitivityShift
from eval_tasks.records.variance import RecipeAnswer, RecipeTest, VarianceTerm

__all__ = [
    "NO_TRAINING_RUN",
    "Ability",
    "AbilityDifference",
    "Alert",
    "Baseline",
    "BenchmarkSelection",
    "BenchmarkVersion",
    "Block",
    "CalibratedItem",
    "Calibration",
    "CalibrationRun",
    "Candidate",
    "Checkpoint",
    "CheckpointFile",
    "Clearing",
    "Companion",
    "Comparison",
    "ComputedTwice",
    "Confirmation",
    "ContractReport",
    "ContractResult",
    "CorpusFile",
    "CorpusFormat",
    "CorpusManifest",
    "CorpusPiece",
    "Cost",
    "CostEntry",
    "CurvePoint",
    "DataSource",
    "DecisionRule",
    "EndpointAccess",
    "EndpointConfig",
    "EngineConfig",
    "EngineTuning",
    "Environment",
    "Excursion",
    "FewShot",
    "GuardReport",
    "HealthFinding",
    "HealthLook",
    "ImportedRows",
    "Item",
    "ItemReport",
    "Judge",
    "Judging",
    "Landing",
    "LossCurve",
    "MeasuredNoise",
    "Measurement",
    "Night",
    "PairedTest",
    "PastPairs",
    "Plan",
    "PlannedBatch",
    "PlannedResolution",
    "PlannedShard",
    "PromptTemplate",
    "ReasoningBlock",
    "RecipeAnswer",
    "RecipeTest",
    "Request",
    "RerunComparison",
    "RerunDifference",
    "Response",
    "RowDifference",
    "RowsComparison",
    "Run",
    "RunRequest",
    "Sample",
    "SampleOutput",
    "Sampling",
    "Scale",
    "Scan",
    "Score",
    "ScorerRef",
    "SeedStudy",
    "Selection",
    "Sensitivity",
    "SensitivityShift",
    "SentinelCheck",
    "SentinelReport",
    "ShardHits",
    "StudiedBenchmark",
    "Suite",
    "SuiteEntry",
    "VarianceTerm",
    "WithinItem",
    "from_json",
    "to_json",
]
