"""Registers the models with the Auto classes, without importing torch before that is needed.

An Auto class has to know our classes when it is used, but importing them takes as long as importing
torch. So our classes are registered after the first import of an Auto class's module or of one of
our own modules. Before that, no code can ask for them.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from hf_alpha.wings import is_here

AUTO = "transformers.models.auto"
OURS = "hf_alpha.modeling"
ROOTS = ("transformers", OURS)
KINDS = ("configuration", "modeling", "tokenization")
"""What modules there and here are named after: `modeling_auto`, `modeling_alpha`."""


def _heads(model: str, *kinds: str) -> dict[str, tuple[str, str]]:
    """Return the heads of a model that are called as their Auto classes."""
    module = f"modeling_{model.lower()}"
    return {f"AutoModelFor{kind}": (module, f"{model}For{kind}") for kind in kinds}


_MODELS: dict[str, dict[str, tuple[str, str]]] = {
    "alpha": {
        "AutoConfig": ("configuration_alpha", "AlphaConfig"),
        "AutoModel": ("modeling_alpha", "AlphaModel"),
        "AutoModelForSeq2SeqLM": ("modeling_alpha", "AlphaForConditionalGeneration"),
        "AutoModelForCausalLM": ("modeling_alpha_decoder", "AlphaForCausalLM"),
        "AutoTokenizer": ("tokenization_alpha", "AlphaTokenizer"),
    },
    "alpha-retrofit": {
        "AutoConfig": ("configuration_retrofit", "RetrofitConfig"),
        "AutoModelForSeq2SeqLM": ("modeling_retrofit", "RetrofitForConditionalGeneration"),
        "AutoModelForCausalLM": ("modeling_retrofit_decoder", "RetrofitForCausalLM"),
    },
    "folnet": {
        "AutoConfig": ("configuration_folnet", "FolnetConfig"),
        "AutoModel": ("modeling_folnet", "FolnetModel"),
        **_heads(
            "Folnet",
            *("PreTraining", "MaskedLM", "SequenceClassification", "TokenClassification"),
            *("MultipleChoice", "QuestionAnswering", "CausalLM"),
        ),
        "AutoModelForSeq2SeqLM": ("modeling_folnet", "FolnetForConditionalGeneration"),
    },
    "geometric": {
        "AutoConfig": ("configuration_geometric", "GeometricConfig"),
        "AutoModel": ("modeling_geometric", "GeometricModel"),
        **_heads("Geometric", "MaskedLM", "SequenceClassification", "TokenClassification"),
    },
}
MODELS = {
    model_type: classes
    for model_type, classes in _MODELS.items()
    if all(is_here(f"{OURS}.{module}") for module, _ in classes.values())
}
"""Model type -> Auto class -> module in `hf_alpha.modeling` and class."""
_TOKENIZERS = {
    "CanonicalTokenizer": "tokenization_canonical",
    "GeometricTokenizer": "tokenization_geometric",
    "TextTokenizer": "tokenization_text",
}
TOKENIZERS = {name: m for name, m in _TOKENIZERS.items() if is_here(f"{OURS}.{m}")}
"""Tokenizers that any model may have: class -> module in `hf_alpha.modeling`."""
MODEL_TYPES = tuple(MODELS)
SYMBOL_MODEL_TYPES = tuple(t for t in ("alpha", "alpha-retrofit", "folnet") if t in MODELS)
"""Those whose models can have symbols."""


def register_when_imported() -> None:
    """Have every class registered once its module, or that of its Auto class, is imported."""
    modules = {module for classes in MODELS.values() for module, _ in classes.values()}
    modules.update(TOKENIZERS.values())
    actions: dict[str, Callable[[], None]] = {}
    for module in sorted(modules):
        actions[f"{OURS}.{module}"] = partial(_register, module)
    for kind in KINDS:
        module_names = sorted(
            f"{OURS}.{module}" for module in modules if module.startswith(f"{kind}_")
        )
        actions[f"{AUTO}.{kind}_auto"] = partial(_import_missing, module_names)
    # When this package is imported again, the finder before is of another class of the same name.
    ours = (__name__, _AfterImport.__qualname__)
    kinds = [(finder, type(finder)) for finder in sys.meta_path]
    sys.meta_path[:] = [f for f, kind in kinds if (kind.__module__, kind.__qualname__) != ours]
    sys.meta_path.insert(0, _AfterImport(actions))
    for name, action in actions.items():
        if name in sys.modules:
            action()


def _import_missing(modules: Iterable[str]) -> None:
    """Import modules of ours, which registers them; those that are being imported come later."""
    for module in modules:
        if module not in sys.modules:
            import_module(module)


def _register(module: str) -> None:
    """Register the classes of one of our modules."""
    auto_module = import_module(f"{AUTO}.{module.split('_')[0]}_auto")
    for name, defined_in in TOKENIZERS.items():
        if defined_in == module:  # a folder's tokenizer_config.json names it
            auto_module.REGISTERED_TOKENIZER_CLASSES[name] = _class(defined_in, name)
    for model_type, classes in MODELS.items():
        for auto_name, (defined_in, name) in classes.items():
            if defined_in == module:
                our_class, auto = _class(defined_in, name), getattr(auto_module, auto_name)
                # For users of the package: no trust_remote_code.
                if auto_name == "AutoConfig":
                    auto.register(model_type, our_class, exist_ok=True)
                else:
                    key = "slow_tokenizer_class" if auto_name == "AutoTokenizer" else "model_class"
                    config_class = _class(*classes["AutoConfig"])
                    auto.register(config_class, exist_ok=True, **{key: our_class})
                # For users of a checkpoint: saving writes the code beside the weights.
                our_class.register_for_auto_class(auto_name)


def _class(module: str, name: str) -> Any:
    return getattr(import_module(f"{OURS}.{module}"), name)


class _Imports(threading.local):
    """The imports of Transformers' and our modules that are under way in this thread.

    Attributes:
        resolving: names that are being looked for, so that two finders that ask each other end.
        depth: modules that are half imported. Importing ours then could need one of them.
        waiting: what is done when there is none any more.
    """

    def __init__(self) -> None:
        self.resolving: set[str] = set()
        self.depth = 0
        self.waiting: list[Callable[[], None]] = []

    @contextmanager
    def one_more(self) -> Iterator[None]:
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            while not self.depth and self.waiting:
                self.waiting.pop(0)()


class _AfterImport(MetaPathFinder):
    """Does something once a module, and every other that needs it, has been imported."""

    def __init__(self, actions: Mapping[str, Callable[[], None]]):
        self.actions = actions
        self.imports = _Imports()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        watched = any(name == root or name.startswith(f"{root}.") for root in ROOTS)
        if not watched or name in self.imports.resolving:
            return None
        self.imports.resolving.add(name)
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)
        try:
            spec = next(filter(None, specs), None)
        finally:
            self.imports.resolving.remove(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _ActingLoader(spec.loader, self.imports, self.actions.get(name))
        return spec


class _ActingLoader(Loader):
    """Loads a module as its own loader does, gives that back to it, and notes what to do then.

    Whatever else is asked of it, its source say, its own loader answers.
    """

    def __init__(self, loader: Loader, imports: _Imports, action: Callable[[], None] | None):
        self.loader, self.imports, self.action = loader, imports, action

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self).get("loader"), name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        with self.imports.one_more():
            self.loader.exec_module(module)
            if self.action is not None:
                self.imports.waiting.append(self.action)
