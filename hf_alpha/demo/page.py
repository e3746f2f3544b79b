"""The page itself, in Gradio: what is clicked, and the interface for programs."""

from functools import partial
from typing import Any

from hf_alpha.demo.drawing import draw_renamed, draw_reply, draw_syntax
from hf_alpha.demo.service import MAX_ANSWERS, MAX_CHARACTERS, Reply, Service

TITLE = "Names are only names"
INTRODUCTION = f"""# {TITLE}
A model or a solver answers; the task's check says whether the answer is right, and why.
**Rename** asks again with other names.
"""


def build_page(service: Service) -> Any:
    """Return the page as `gradio.Blocks`.

    Raises:
        ImportError: Gradio is not installed.
    """
    gradio = import_gradio()
    first = service.choices[0].task
    samples = _samples(first)
    with gradio.Blocks(title=f"hf_alpha: {TITLE}", analytics_enabled=False) as page:
        gradio.Markdown(INTRODUCTION)
        with gradio.Row():
            task = gradio.Dropdown(service.tasks(), value=first.name, label="Task")
            names = service.names(first.name)
            asked = gradio.Dropdown(names, value=names[0], label="Who answers")
        problem = gradio.Textbox(
            next((text for (text,) in samples), ""),
            label="Problem", lines=2, max_length=MAX_CHARACTERS, elem_id="problem",
        )  # fmt: skip
        with gradio.Row():
            solve = gradio.Button("Solve", variant="primary", elem_id="solve")
            rename = gradio.Button("Rename", elem_id="rename")
            several = gradio.Button(f"{MAX_ANSWERS} answers", elem_id="several")
        examples = gradio.Dataset(
            components=[problem], samples=samples, visible=bool(samples), label="Examples",
            elem_id="examples",
        )  # fmt: skip
        reply = gradio.HTML(elem_id="reply")
        with gradio.Accordion("Syntax", open=False):
            syntax = gradio.HTML(draw_syntax(first))
        hidden: dict[str, Any] = {"api_visibility": "private"}
        places = {"inputs": [problem, asked], "outputs": reply, **hidden}
        for button, draw in (
            (solve, lambda text, name: draw_reply(service.solve(text, name))),
            (several, lambda text, name: draw_reply(service.solve(text, name, MAX_ANSWERS))),
            (rename, lambda text, name: draw_renamed(service.rename(text, name))),
        ):
            button.click(draw, **places)
        examples.click(lambda sample: sample[0], examples, problem, queue=False, **hidden)
        changed = partial(_of_task, service)
        task.input(changed, task, [asked, examples, syntax], queue=False, **hidden)
        _offer_interface(gradio, service)
    return page


def _offer_interface(gradio: Any, service: Service) -> None:
    """Offer what programs call: `models` and `solve`."""

    def models() -> list[dict[str, str]]:
        """Return models and solvers, each with its task."""
        return [{"model": choice.name, "task": choice.task.name} for choice in service.choices]

    def solve(problem: str, model: str, answers: int = 1) -> dict[str, Any]:
        """Answer a problem by one of the models or solvers."""
        return as_json(service.solve(problem, model, answers))

    gradio.api(models, api_name="models", queue=False)
    gradio.api(solve, api_name="solve")


def as_json(reply: Reply) -> dict[str, Any]:
    """Return what docs/solve.schema.json describes, who was asked, and why answers are right."""
    explanations = [answer.explanation.text() for answer in reply.answers]
    return {"asked": reply.asked, **reply.solution.record(), "explanations": explanations}


def import_gradio() -> Any:
    """Return the module.

    Raises:
        ImportError: it is not installed; the message says how to.
    """
    try:
        import gradio
    except ImportError as error:
        raise ImportError(
            f"the page needs Gradio: pip install 'hf_alpha[demo]' ({error})"
        ) from None
    return gradio


def _of_task(service: Service, name: str) -> tuple[Any, Any, str]:
    """Return what a task changes: who answers, examples, syntax."""
    gradio = import_gradio()
    names = service.names(name)
    task = service.choice(names[0]).task
    samples = _samples(task)
    return (
        gradio.Dropdown(names, value=names[0]),
        gradio.Dataset(samples=samples, visible=bool(samples)),
        draw_syntax(task),
    )


def _samples(task: Any) -> list[list[str]]:
    return [[text] for text in task.samples or (task.example,) if text]


__all__ = ["as_json", "build_page", "import_gradio"]
