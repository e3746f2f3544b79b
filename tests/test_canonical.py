"""Names written as words of a model, and back: exact, whatever they are called."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.request import Request, urlopen

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizers import SUBWORD, finish, word_level
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, pipeline

from hf_alpha import CanonicalModel, CanonicalNames, MarkedText
from hf_alpha.canonical import LETTERS, generating, host_words

RULE = {"pattern": "[A-Za-z_][A-Za-z_0-9]*", "reserved": ["def", "return", "and", "not"]}
TOKEN = r"\w+|\W"
PIECES = ["def ", "return ", "and ", " = ", "(", ", ", ")\n", " + ", "42 ", "'", ""]


def characters():
    """A tokenizer that splits all words: one character, one token."""
    letters = [chr(i) for i in range(32, 127)] + ["\n"]
    tokenizer = Tokenizer(models.WordLevel({c: i for i, c in enumerate(letters)}, unk_token="~"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    return finish(tokenizer, False, unk_token="~", eos_token="~")


def digits():
    """A tokenizer of words and digits, without a letter alone: `v1` is two tokens."""
    tokenizer = Tokenizer(
        models.BPE({c: i for i, c in enumerate("~v0123456789")}, [], unk_token="~")
    )
    tokenizer.decoder = decoders.Fuse()
    return finish(tokenizer, False, unk_token="~")


TOKENIZERS = [*SUBWORD, characters, digits, lambda: word_level(words=LETTERS)]
words = st.from_regex(r"[A-Za-z_][A-Za-z_0-9]{0,5}", fullmatch=True).filter(
    lambda word: word not in RULE["reserved"]
)
templates = st.lists(st.sampled_from(PIECES) | st.integers(0, 30), max_size=60)


def written(template, names):
    """A text of pieces and numbers of names, with spaces between."""
    return " ".join(part if isinstance(part, str) else names[part] for part in template)


@pytest.mark.parametrize("make", TOKENIZERS)
def test_a_renamed_text_is_the_same_to_the_model_and_its_answer_is_renamed(make):
    """Answers to learn come back as they were; in others, names of their own stay apart."""
    names = CanonicalNames({"name": RULE}, tokenizer=make())

    @settings(max_examples=25, deadline=None)
    @given(
        templates,
        templates,
        st.lists(words, min_size=62, max_size=62, unique=True),
        st.integers(0, 3),
    )
    def check(template, answer, spellings, draw):
        first, second = spellings[:31], spellings[31:]
        one, two = (names.spell(written(template, some), draw) for some in (first, second))
        assert one.text == two.text
        target = written([p for p in answer if isinstance(p, str) or p in template], first)
        assert one.back(one.answer(target)) == target
        # what a model may write: words for names, used or not, and others
        may = [*one.words.values(), *one.free, "result", "v77", "def"]
        reply = written(answer, [may[i % len(may)] for i in range(31)])
        for spelled in (one, two):
            check_reply(spelled, reply)
        assert one.key(reply) == two.key(reply)

    check()


def check_reply(spelled, reply):
    """Names of the text in place of their words; words that are none; own names, apart from all."""
    back, own = spelled.back(reply), {}
    names = {word: name for name, word in spelled.words.items()}
    for word, there in zip(re.findall(TOKEN, reply), re.findall(TOKEN, back), strict=True):
        if word in names:
            assert there == names[word]
        elif word in spelled.others or word in RULE["reserved"] or not word[0].isalpha():
            assert there == word
        else:
            assert own.setdefault(word, there) == there
    assert len({*own.values()}) == len(own)
    assert not {*own.values()} & (spelled.words.keys() | spelled.others)
    chunks = [reply[i : i + 3] for i in range(0, len(reply), 3)]
    assert "".join(spelled.stream(chunks)) == back


@pytest.mark.parametrize(
    ("make", "one_token"), [*zip(TOKENIZERS, [19, 19, 3, 19, 1, 19], strict=True)]
)
def test_words_are_one_token_each_where_the_tokenizer_has_such(make, one_token):
    """Else they are numbered."""
    tokenizer = make()
    assert len(host_words(tokenizer)) == one_token
    spelled = CanonicalNames({"name": "[a-z]+"}, tokenizer=tokenizer).spell("speed = mass")
    first = {19: "b = c", 3: "x = y", 1: "v = v1"}
    assert spelled.text == first[one_token]


def test_a_tokenizer_that_writes_no_word_for_names_is_refused():
    """It has to be said which words it knows."""
    tokenizer = word_level()
    assert host_words(tokenizer) == ("u", "x", "y", "z")
    tokenizer = finish(Tokenizer(models.WordLevel({"~": 0, "1": 1}, "~")), False, unk_token="~")
    with pytest.raises(ValueError, match="knows none of the words"):
        CanonicalNames({"name": "[a-z]+"}, tokenizer=tokenizer)
    names = CanonicalNames({"name": "[a-z]+"}, tokenizer=tokenizer, words=["1", "2"])
    assert names.spell("p = q = r").text == "1 = 2 = v1"


def test_words_that_the_text_has_besides_its_names_are_skipped():
    """Whatever the names are; reserved words too, and what only differs in case."""
    names = CanonicalNames({"name": {"pattern": r"[a-z]\d?", "reserved": ["c"]}})
    assert names.spell("B x7 = e ; v1 ; kk").text == "B e = f ; g ; kk"
    assert names.spell("B x7 = c ; v1 ; kk").text == "B e = c ; f ; kk"
    marked = MarkedText("b or f is b", [(0, 1, "name")])  # the second one is no name
    assert names.spell(marked).text == "e or f is b"


def test_more_names_than_words_are_numbered():
    """The text's own `v2` is skipped."""
    names = CanonicalNames({"name": r"n\d+"}, words=["b"])
    assert names.spell("n3 n1 v2 n2 n3").text == "b v1 v2 v3 b"


def test_what_an_answer_names_itself_keeps_clear_of_the_names_of_the_text():
    """`e` and `result` are names of the text, which the model has not read."""
    names = CanonicalNames({"name": "[a-z]+[0-9]*"})
    spelled = names.spell("e + result + q")
    assert spelled.text == "b + c + e".replace("e", spelled.words["q"])
    assert spelled.back("let f = c in f + total") == "let f = result in f + total"
    assert spelled.back("e2 = b ; result = c") == "e2 = e ; f = result"
    assert spelled.answer("k = e + result") == f"{spelled.free[3]} = b + c"


def test_classes_that_mean_something_stay_as_they_are():
    """Functions here; a word for variables is none of theirs."""
    rules = {"variable": "[xyz]", "function": ["b", "sin"]}
    spelled = CanonicalNames(rules, kept=["function"]).spell("sin(x) + b(z)")
    assert spelled.text == "sin(c) + b(e)"
    assert spelled.back("b(c)") == "b(x)"
    with pytest.raises(ValueError, match="no class 'operator'"):
        CanonicalNames(rules, kept=["operator"])


def test_bad_input_is_refused():
    """A word that is none; a name that is a part of a word; names that the text has to say."""
    with pytest.raises(ValueError, match="'new word' is no word"):
        CanonicalNames({"name": "[a-z]"}, words=["new word"])
    with pytest.raises(ValueError, match="'1' at 1 is a part of a word"):
        CanonicalNames({"ring": "[1-9]"}).spell(MarkedText("c1ccccc1", [(1, 2, "ring")]))
    with pytest.raises(ValueError, match="give it as MarkedText"):
        CanonicalNames({"person": {"column": "people"}}).spell("Ada met Bob")


def test_special_tokens_of_a_chat_are_no_names():
    """A pattern of all words would find some in them."""
    tokenizer = characters()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_end|>"]})
    names = CanonicalNames({"name": "[a-z_]+"}, tokenizer=tokenizer)
    assert names.spell("speed<|im_end|>").text == "b<|im_end|>"


# -- models ---------------------------------------------------------------------------------------


def swapped(text):
    """A model: answers `x = y` by `y = x`, with a remark that depends on what x is called."""
    left, right = text.split(" = ")
    return f"{right} = {left}" if left < right else f"{left} = {right}"


def test_a_vote_depends_on_no_name_and_says_how_far_spellings_differ():
    """The model answers by the order of letters, so that spellings differ, and none does for it."""
    model = CanonicalModel(swapped, CanonicalNames({"name": "[a-z]+"}))
    votes = {model.vote(f"{a} = {b}").answer == f"{b} = {a}" for a, b in ("pq", "qp", ("u", "k"))}
    assert len(votes) == 1
    assert model.vote("p = q").doubt in (0.2, 0.4)
    assert CanonicalModel(lambda text: f"not {text}", model.names).vote("p = q").doubt == 0
    # new names are called otherwise in each spelling, which is no difference
    fresh = CanonicalModel(lambda word: f"let {'p' if word == 'k' else 'k'} = {word}", model.names)
    assert fresh.vote("left").doubt == 0


def test_a_model_on_this_machine_gives_renamed_answers():
    """With random weights, whose answers are any tokens at all."""
    tokenizer = SUBWORD[0]()
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=128, n_embd=32, n_layer=2, n_head=2,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = GPT2LMHeadModel(config).eval()
    ask = generating(model, tokenizer, max_new_tokens=30, do_sample=False)
    named = CanonicalModel(ask, CanonicalNames({"name": "[a-z]{4,}"}, tokenizer=tokenizer))
    pipe = pipeline("text-generation", model=model, tokenizer=tokenizer)
    by_pipe = CanonicalModel(
        lambda text: pipe(text, return_full_text=False, max_new_tokens=30, do_sample=False)[0][
            "generated_text"
        ],
        named.names,
    )
    assert by_pipe("alpha sees gamma") == named("alpha sees gamma")
    assert named("alpha sees gamma") == named("omega sees kappa").replace("omega", "alpha").replace(
        "kappa", "gamma"
    )


@pytest.fixture
def address():
    """A server that speaks OpenAI's protocol, in parts too, and swaps the sides of equations."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = body["messages"][-1]["content"]
            seen.append(text)
            right, left = text.split(" = ")
            answer = f"so {left} = {right} with k"
            parts = [answer[i : i + 2] for i in range(0, len(answer), 2)]
            self.send_response(200)
            self.end_headers()
            if body.get("stream"):
                for part in parts:
                    event = {"choices": [{"delta": {"content": part}}]}
                    self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
                self.wfile.write(b"data: [DONE]\n\n")
            else:
                self.wfile.write(
                    json.dumps({"choices": [{"message": {"content": answer}}]}).encode()
                )

        def log_message(self, *args):
            pass

    seen = []
    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.seen = seen
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def asked(server, text, **fields):
    """One request to it."""
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **fields}
    url = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    return urlopen(Request(url, json.dumps(body).encode()), timeout=10)


def test_a_model_behind_an_address_reads_words_and_answers_in_names(address):
    """At once, and as a stream whose parts cut words."""
    rule = {"pattern": "[a-z_]{2,}", "reserved": ["so", "with"]}
    names = CanonicalNames({"name": rule})

    def at_once(text):
        with asked(address, text) as reply:
            return json.load(reply)["choices"][0]["message"]["content"]

    def in_parts(text):
        with asked(address, text, stream=True) as reply:
            for line in reply:
                if line.startswith(b"data: {"):
                    yield json.loads(line[6:])["choices"][0]["delta"]["content"]

    assert CanonicalModel(at_once, names)("speed = mass") == "so mass = speed with k"
    parts = list(CanonicalModel(in_parts, names).stream("speed = mass"))
    assert "".join(parts) == "so mass = speed with k" and len(parts) > 5
    assert address.seen == ["b = c"] * 2
