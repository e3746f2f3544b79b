"""The page itself, in Gradio, and the interface for programs."""

from collections.abc import Mapping
from typing import Any

from hf_alpha.demo.choices import MAX_ANSWERS, MAX_CHARACTERS, Choice
from hf_alpha.demo.drawing import draw_renamed, draw_solution

try:
    import gradio
except ImportError as error:
    raise ImportError(f"the page needs Gradio: pip install 'hf_alpha[demo]' ({error})") from None

TITLE = "Names are only names"
INTRODUCTION = f"""# {TITLE}
A model or a solver answers; the task's check says whether the answer is right, and why.
**Rename** asks again with other names.
"""


def build_page(choices: Mapping[str, Choice]) -> Any:
    """Return the page as `gradio.Blocks`; one problem is answered at a time."""
    first_of_tasks: dict[str, Choice] = {}
    for choice in choices.values():
        first_of_tasks.setdefault(choice.task.name, choice)
    examples = [
        [text, choice.name]
        for choice in first_of_tasks.values()
        for text in choice.task.samples or (choice.task.example,)
        if text
    ]

    def solve(problem: str, model: str, answers: int) -> tuple[str, dict[str, Any]]:
        """Answer a problem: for people, and what docs/solve.schema.json describes."""
        solution = choices[model].solve(problem or "", answers)
        return draw_solution(choices[model], solution), solution.record()

    def rename(problem: str, model: str, answers: int) -> str:
        return draw_renamed(choices[model], choices[model].rename(problem or "", answers))

    with gradio.Blocks(
        title=f"hf_alpha: {TITLE}", analytics_enabled=False, fill_width=True
    ) as page:
        gradio.Markdown(INTRODUCTION)
        problem = gradio.Textbox(
            examples[0][0] if examples else "", label="Problem", lines=2, max_length=MAX_CHARACTERS
        )
        with gradio.Row():
            model = gradio.Dropdown([*choices], label="Who answers")
            answers = gradio.Slider(1, MAX_ANSWERS, step=1, precision=0, label="Answers")
        with gradio.Row():
            solve_button = gradio.Button("Solve", variant="primary")
            rename_button = gradio.Button("Rename")
        reply = gradio.HTML(elem_id="reply")
        record = gradio.JSON(visible=False)
        inputs = [problem, model, answers]
        solve_button.click(solve, inputs, [reply, record], concurrency_id="model")
        hidden: dict[str, Any] = {"api_visibility": "private"}
        rename_button.click(rename, inputs, reply, concurrency_id="model", **hidden)
        if examples:
            gradio.Examples(examples, [problem, model], examples_per_page=len(examples), **hidden)
    return page


__all__ = ["build_page"]
