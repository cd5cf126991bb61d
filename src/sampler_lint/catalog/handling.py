"""What calls do with what they are given, by the names that libraries share."""

from __future__ import annotations

from sampler_lint.catalog.schema import words

#: What is given back: one number; that, or another value that compares; what is known of a tensor
#: without its numbers; one value of many, in any order; all of many in a row; numbers to begin at.
NUMBERS = words("float int item len size")
FIGURES = words("float hash int item repr str tolist tuple")
SHAPES = words("bool device dim dtype id len ndim numel shape size")
SUMS = words("fsum max mean median min set sorted std sum var")
JOINS = words("cat concat concatenate hstack vstack")
ZEROS = words("new_zeros tensor zeros zeros_like")
#: By which a list gets one more at a place of its own, a set one that has none, and both lose one.
APPENDS = words("append appendleft extend insert put")
ADDS = words("add update")
TAKES = words("pop popleft")
#: What shows batches to people, as they happen to come, and gives nothing back.
SHOWS = words(
    "add_figure add_graph add_histogram add_image add_images add_scalar add_scalars add_text"
    " imsave imshow imwrite plot save_image set_description set_postfix"
)
#: By whose attributes a model is known.
OF_MODELS = words("eval load_state_dict named_parameters parameters state_dict train zero_grad")
#: The packages whose functions give a value of what they are given, and keep it for people at most.
PURE = words(
    "PIL builtins collections copy cv2 einops functools itertools kornia math matplotlib numpy"
    " operator pandas random scipy sklearn skimage torch torchaudio torchvision tqdm typing wandb"
)
