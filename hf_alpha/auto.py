"""Registers the models with the Auto classes, without importing torch before that is needed.

An Auto class has to know our classes when it is used, but importing them takes as long as importing
torch. So our classes are registered after the first import of an Auto class's module or of one of
our own modules. Before that, no code can ask for them.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

from hf_alpha.wings import is_here

AUTO = "transformers.models.auto"
OURS = "hf_alpha.modeling"
ROOTS = ("transformers.", f"{OURS}.")
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
DEFAULT_MODEL_TYPE = "alpha"
"""What a new model is unless told otherwise."""
SYMBOL_MODEL_TYPES = tuple(t for t in ("alpha", "alpha-retrofit", "folnet") if t in MODELS)
"""Those whose models can have symbols."""


def register_when_imported() -> None:
    """Have every class registered once its module, or that of its Auto class, is imported."""
    tables = [*MODELS.values(), {name: (module, name) for name, module in TOKENIZERS.items()}]
    modules = sorted({module for classes in tables for module, _ in classes.values()})
    actions: dict[str, Callable[[], None]] = {}
    for module in modules:
        actions[f"{OURS}.{module}"] = partial(_register, module)
    for kind in KINDS:
        ours = [f"{OURS}.{module}" for module in modules if module.startswith(f"{kind}_")]
        actions[f"{AUTO}.{kind}_auto"] = partial(_import_missing, ours)
    # When this package is imported again, the finder before is of another class of the same name.
    sys.meta_path[:] = [each for each in sys.meta_path if f"{type(each)}" != f"{_AfterImport}"]
    finder = _AfterImport(actions)
    sys.meta_path.insert(0, finder)
    finder.act(list(filter(sys.modules.__contains__, actions)))


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


class _Thread(threading.local):
    """The imports of Transformers' and our modules that are under way in this thread.

    Attributes:
        sought: the module that is looked for, so that two finders that ask each other end.
        depth: modules that are half imported. Importing ours then could need one of them.
        waiting: those with an action, for when there is none any more.
    """

    sought = ""
    depth = 0
    waiting: tuple[str, ...] = ()


class _AfterImport(MetaPathFinder):
    """Does something once a module, and every other that needs it, has been imported.

    Python has no such event, and Transformers takes no class that is not imported. So the loader
    that others find for a module is put into an [`_ActingLoader`]. When all is done, this goes.
    """

    def __init__(self, actions: dict[str, Callable[[], None]]):
        self.actions, self.thread = actions, _Thread()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not f"{name}.".startswith(ROOTS) or name == self.thread.sought:
            return None
        before, self.thread.sought = self.thread.sought, name
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)
        try:
            spec = next(filter(None, specs), None)
        finally:
            self.thread.sought = before
        if spec is not None and spec.loader is not None:
            spec.loader = cast(Loader, _ActingLoader(spec.loader, self))
        return spec

    def act(self, names: Iterable[str]) -> None:
        """Do what is to be done for modules that are imported."""
        for name in names:
            if action := self.actions.pop(name, None):
                action()
        if not self.actions and self in sys.meta_path:
            sys.meta_path.remove(self)


class _ActingLoader:
    """Loads a module as its own loader does, gives that back to it, and has the finder act then.

    Whatever else is asked of it, its source say, its own loader answers.
    """

    def __init__(self, loader: Loader, finder: _AfterImport):
        self.loader, self.finder = loader, finder

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self).get("loader"), name)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        thread = self.finder.thread
        thread.depth += 1
        try:
            self.loader.exec_module(module)
            thread.waiting += (module.__name__,)
        finally:
            thread.depth -= 1
        if not thread.depth:
            names, thread.waiting = thread.waiting, ()
            self.finder.act(names)
