"""How far the analysis goes, each limit with its reason; what meets one is not known."""

from __future__ import annotations

#: Imports of imports that are followed: longer ways are cycles of a package's own.
LONGEST_WAY_OF_IMPORTS = 8
#: Functions looked into for a step, from one pass: a trainer's own methods, not a library.
MOST_SEARCHED_FOR_STEP = 60
#: A longer text is no key, name or option; its contents are not kept.
LONGEST_STRING = 120
#: People write a dozen levels; Python allows more than any walk could recurse to, so what stands
#: below this one is read as an expression of its own, and the bases of a class are not known.
DEEPEST_NESTING = 64
#: libcst takes a minute for a million lines, be they blank.
MOST_LINES = 50_000
#: As many files are looked at by two processes.
MANY_FILES = 500
#: Calls of calls whose own results are told apart, and helpers of helpers that are looked into.
DEEPEST_CALLS = 3
#: A name that is called in more places (``forward``, ``view``) is not followed back.
MOST_CALLERS = 150
#: ``partial`` of ``partial``: more are a loop.
MOST_PARTIALS = 4
#: Ways through one function: with more, nothing is said of it.
MOST_STATES = 600
#: Callers whose ways into a function are told apart.
MOST_CALLERS_OF_WAYS = 40
#: Bytes of an ``if`` before a name that are read: tests are shorter.
LONGEST_TEST = 400
#: In a tree whose files hold more bytes together, a sampler word in a comment does not count, and
#: few others do (see :mod:`.narrowing`); what none leads to is not parsed, for that takes longer
#: than all the rest, and a syntax error in it hides no finding.
LARGE_TREE = 16 * 2**20
#: A function with more names is called by hooks and registries that nobody can follow.
MOST_ALIASES = 8
#: Assignments, operands, parameters and attributes between a value and its source.
DEEPEST_SLICE = 10
#: Functions that one may call: a program of more is cut there.
MOST_REACHED = 400
#: Of a name with more assignments that may reach a read, the order of statements says nothing.
MOST_REACHING = 64
#: Values of one expression: with more it may be anything. So with the settings of one seed.
MOST_VALUES = 24
#: As many values are compared one by one.
FEW_VALUES = 2
#: Steps of one question: more than any in a real tree takes (the most seen is 198,000, in unsloth).
MOST_STEPS = 250_000
#: Files that what a class does may rest on, for it to be tried once for all classes of its text.
MOST_FILES_OF_CLASS = 8
#: Trials that are kept for classes of the same text, in one process: about 10 kB each.
MOST_TEXTS_TRIED = 500
#: Attributes tried as a length.
MOST_ATTRIBUTES = 10
#: How alike two spellings must be for a slip of the pen (`num_worker` and `num_workers`: 0.95).
SURE_SLIP = 0.88
#: Letters of an expression that a message quotes.
LONGEST_QUOTED = 60
#: Samplers in samplers: a batch sampler holds one, and that at most two more.
DEEPEST_WRAPPING = 3
#: Calls between where a program begins and what it builds, or between an epoch loop and the pass
#: inside it: trainers nest three or four.
DEEPEST_CHAIN = 6
#: How often all fixes of one file may look at as much as is in it. Those of the same statements are
#: looked at together; only a file with many unsafe ones comes near it.
MOST_LOOKS = 30
#: Worlds with guessed arguments that together tell something: one may be a guess too far.
FEWEST_GUESSED = 3
#: Files that call a method by its name, of those that no other word leads to: more call another.
MOST_CALLING_BY_NAME = 4
#: Files that register what a loader may read, without a sampler word, that are worth a look.
MOST_REGISTERED = 40
#: Folders of a tree that are searched for settings: with more, a name may be in any of them.
MOST_FOLDERS = 2_000
