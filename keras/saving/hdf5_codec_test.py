"""Every `ml_dtypes` type must survive HDF5 bit for bit, and be safe to open."""

import ctypes
import json
import os
import re
import shutil
import sys
import tempfile
import tracemalloc
from unittest import mock

import h5py
import ml_dtypes
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

from keras.saving import hdf5_codec

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
NAMES = [name for name in hdf5_codec.FORMATS if hasattr(ml_dtypes, name)]
ONE_BYTE = [name for name in NAMES if np.dtype(name).itemsize == 1]
FLOATS = [
    name
    for name in NAMES
    if isinstance(hdf5_codec.FORMATS[name], hdf5_codec.Float)
]
INTEGERS = [
    name
    for name in NAMES
    if isinstance(hdf5_codec.FORMATS[name], hdf5_codec.Integer)
]
INEXACT = [name for name in NAMES if name not in FLOATS + INTEGERS]
# The types that can hold a one: int1 has 0 and -1 only.
WITH_ONE = [name for name in NAMES if name != "int1"]
COMPLEX = ["complex64", "complex128"] + [
    name for name in NAMES if name.endswith("complex32")
]
# NumPy cannot read its own archive of the others.
ARCHIVED = [name for name in NAMES if np.dtype(name).kind == "V"]


def each(names):
    """The arguments of `named_parameters` for one test case a name."""
    return [(name, name) for name in names]


def each_with(names, table):
    """One test case for each name and each entry of a dictionary."""
    return [
        (f"{name}_{key}", name, value)
        for name in names
        for key, value in table.items()
    ]


def bit_patterns(name):
    """Every value of a type of up to 16 bits, a sample of a wider one."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = 8 * dtype.itemsize
    if bits <= 16:
        patterns = np.arange(1 << bits)
    else:
        patterns = np.random.RandomState(7).randint(0, 1 << bits, 1 << 16, "u8")
    return patterns.astype(f"u{dtype.itemsize}").view(dtype)


def some(name, shape):
    """An array of distinct bit patterns, as far as the type has them."""
    patterns = bit_patterns(name)
    count = int(np.prod(shape, dtype=int))
    return patterns[(np.arange(count) * 37 + 11) % len(patterns)].reshape(shape)


def big_endian_array(value):
    return value.astype(value.dtype.newbyteorder(">"))


def bfloat16_type(base=h5py.h5t.IEEE_F32LE):
    """HDF5's bfloat16, made here rather than taken from the codec."""
    file_type = base.copy()
    file_type.set_fields(15, 7, 8, 0, 7)
    file_type.set_size(2)
    file_type.set_ebias(127)
    return file_type


def predefined(name):
    """One of HDF5's own types, or None where this HDF5 does not have it."""
    library = ctypes.CDLL(h5py.h5t.__file__)
    try:
        number = ctypes.c_int64.in_dll(library, f"{name}_g").value
    except ValueError:
        return None
    return h5py.h5t.TypeID(number).copy()


def owner(array):
    """The array at the end of a chain of views."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class CodecTestCase(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = self.new_file("weights.h5")

    def path(self, name):
        return os.path.join(self.folder, name)

    def new_file(self, name, mode="w"):
        file = h5py.File(self.path(name), mode)
        self.addCleanup(file.close)
        return file

    def reopened(self):
        """What another process would find in the file."""
        self.file.close()
        self.file = self.new_file("weights.h5", "r")
        return self.file

    def assertIdentical(self, actual, expected):
        self.assertIsInstance(actual, np.ndarray)
        self.assertEqual(actual.dtype, expected.dtype)
        self.assertEqual(actual.shape, expected.shape)
        self.assertEqual(actual.tobytes(), expected.tobytes())


class RoundTripTest(CodecTestCase):
    def test_every_type_of_ml_dtypes_has_a_format(self):
        types = [
            value
            for value in vars(ml_dtypes).values()
            if isinstance(value, type) and issubclass(value, np.generic)
        ]
        names = {np.dtype(value).name for value in types}
        self.assertNotEmpty(names)
        self.assertEqual(names, set(NAMES))

    @parameterized.named_parameters(
        each_with(NAMES, {"number": False, "opaque": True})
    )
    def test_every_bit_pattern(self, name, opaque):
        value = bit_patterns(name)
        hdf5_codec.write(self.file, "w", value, opaque=opaque)
        self.assertIdentical(hdf5_codec.read(self.reopened(), "w"), value)

    @parameterized.named_parameters(
        each_with(
            NAMES,
            {
                "scalar": (),
                "empty": (0, 3),
                "one_element": (1,),
                "one_element_deep": (1, 1, 1),
                "matrix": (5, 3),
                "many_dimensions": (2, 3, 1, 4, 2),
            },
        )
    )
    def test_shape(self, name, shape):
        value = some(name, shape)
        hdf5_codec.write(self.file, "w", value)
        self.assertIdentical(hdf5_codec.read(self.reopened(), "w"), value)

    @parameterized.named_parameters(
        each_with(
            NAMES,
            {
                "fortran": np.asfortranarray,
                "transposed": np.transpose,
                "reversed": lambda x: x[::-1],
                "strided": lambda x: x[::2, 1::2],
                "row": lambda x: x[:, 2],
                "broadcast": lambda x: np.broadcast_to(x[0], (3, 6)),
            },
        )
    )
    def test_memory_layout(self, name, change):
        value = change(some(name, (4, 6)))
        hdf5_codec.write(self.file, "w", value)
        self.assertIdentical(
            hdf5_codec.read(self.reopened(), "w"), np.array(value, order="C")
        )

    @parameterized.named_parameters(("number", False), ("opaque", True))
    def test_array_of_the_other_byte_order(self, opaque):
        value = some("bfloat16", (4, 6))
        swapped = big_endian_array(value)
        self.assertFalse(swapped.dtype.isnative)
        hdf5_codec.write(self.file, "w", swapped, opaque=opaque)
        self.assertIdentical(hdf5_codec.read(self.reopened(), "w"), value)

    @parameterized.named_parameters(
        ("numpy_scalar", ml_dtypes.bfloat16(1.5)),
        ("list", [ml_dtypes.bfloat16(1.5), ml_dtypes.bfloat16(-0.0)]),
        ("read_only", np.broadcast_to(ml_dtypes.bfloat16(1.5), (2, 2))),
    )
    def test_what_is_not_quite_an_array(self, value):
        dataset = hdf5_codec.write(self.file, "w", value)
        self.assertIsInstance(dataset, h5py.Dataset)
        expected = np.array(value, BFLOAT16)
        self.assertIdentical(hdf5_codec.read_dataset(dataset), expected)

    def test_name_with_groups(self):
        value = some("bfloat16", (2,))
        hdf5_codec.write(self.file, "layer/layer/kernel:0", value)
        for name in ("layer/layer/kernel:0", "/layer/layer/kernel:0"):
            self.assertIdentical(hdf5_codec.read(self.file, name), value)
        group = self.file["layer"]
        self.assertIdentical(hdf5_codec.read(group, "layer/kernel:0"), value)

    def test_name_that_is_taken(self):
        value = some("bfloat16", (2,))
        hdf5_codec.write(self.file, "w", value)
        with self.assertRaises(ValueError):
            hdf5_codec.write(self.file, "w", some("bfloat16", (3,)))
        self.assertIdentical(hdf5_codec.read(self.file, "w"), value)


class FileTypeTest(CodecTestCase):
    """What others find in the file."""

    @parameterized.named_parameters(each(NAMES))
    def test_number_type_wherever_it_is_exact(self, name):
        if "int" in name:
            # The only bit of int1 is its sign.
            exact = name != "int1"
        elif name in COMPLEX:
            exact = False
        else:
            # HDF5 takes the highest exponent for infinities and NaN.
            exact = bool(np.isinf(np.array(np.inf, "f4").astype(name)))
        self.assertEqual(name in FLOATS + INTEGERS, exact)

    @parameterized.named_parameters(each(FLOATS))
    def test_float_type(self, name):
        info = ml_dtypes.finfo(name)
        dataset = hdf5_codec.write(self.file, "w", some(name, (3,)))
        stored = dataset.id.get_type()
        self.assertEqual(stored.get_class(), h5py.h5t.FLOAT)
        self.assertEqual(8 * stored.get_size(), info.bits)
        self.assertEqual(stored.get_precision(), info.bits)
        self.assertEqual(stored.get_offset(), 0)
        self.assertEqual(
            stored.get_fields(),
            (info.bits - 1, info.nmant, info.nexp, 0, info.nmant),
        )
        self.assertEqual(stored.get_ebias(), 1 - info.minexp)
        self.assertEqual(stored.get_norm(), h5py.h5t.NORM_IMPLIED)
        self.assertEqual(stored.get_order(), h5py.h5t.ORDER_LE)
        self.assertEmpty(dataset.attrs)

    @parameterized.named_parameters(each(INTEGERS))
    def test_integer_type(self, name):
        info = ml_dtypes.iinfo(name)
        dataset = hdf5_codec.write(self.file, "w", some(name, (3,)))
        stored = dataset.id.get_type()
        self.assertEqual(stored.get_class(), h5py.h5t.INTEGER)
        self.assertEqual(stored.get_size(), 1)
        self.assertEqual(stored.get_offset(), 0)
        signed = stored.get_sign() == h5py.h5t.SGN_2
        bits = stored.get_precision()
        self.assertEqual(-(1 << (bits - 1)) if signed else 0, info.min)
        self.assertEqual((1 << (bits - signed)) - 1, info.max)
        self.assertEmpty(dataset.attrs)

    @parameterized.named_parameters(each(NAMES))
    def test_opaque(self, name):
        value = some(name, (3,))
        dataset = hdf5_codec.write(self.file, "w", value, opaque=True)
        self.assertEqual(dataset.id.get_type().get_class(), h5py.h5t.OPAQUE)
        self.assertEqual(dict(dataset.attrs), {"dtype": name})
        self.assertEqual(dataset[()].tobytes(), value.tobytes())

    @parameterized.named_parameters(each(INEXACT))
    def test_inexact_type_is_always_opaque(self, name):
        dataset = hdf5_codec.write(self.file, "w", some(name, (3,)))
        self.assertEqual(dataset.id.get_type().get_class(), h5py.h5t.OPAQUE)
        self.assertEqual(dict(dataset.attrs), {"dtype": name})

    @parameterized.named_parameters(each(FLOATS + INTEGERS))
    def test_generic_reader_sees_the_numbers(self, name):
        value = bit_patterns(name)
        hdf5_codec.write(self.file, "w", value)
        seen = self.reopened()["w"][()].astype("float32")
        expected = value.astype("float32")
        np.testing.assert_array_equal(seen, expected)
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(
            np.signbit(seen[numbers]), np.signbit(expected[numbers])
        )

    @parameterized.named_parameters(each(FLOATS + INTEGERS))
    def test_generic_reader_can_ask_for_float32(self, name):
        value = some(name, (3, 5))
        dataset = hdf5_codec.write(self.file, "w", value)
        seen = np.empty(value.shape, "float32")
        dataset.read_direct(seen)
        np.testing.assert_array_equal(seen, value.astype("float32"))

    def test_legacy_reader_can_ask_for_bfloat16(self):
        # Older releases read the slots of legacy optimizers like this.
        value = bit_patterns("bfloat16")
        dataset = hdf5_codec.write(self.file, "w", value, opaque=True)
        self.assertIdentical(np.asarray(dataset, dtype=BFLOAT16), value)

    def test_bfloat16_is_the_predefined_type(self):
        stored = hdf5_codec.write(
            self.file, "w", some("bfloat16", (3,))
        ).id.get_type()
        expected = predefined("H5T_FLOAT_BFLOAT16LE")
        if h5py.version.hdf5_version_tuple >= (2, 0, 0):
            self.assertIsNotNone(expected)
        if expected is None:
            expected = bfloat16_type()
        self.assertEqual(stored, expected)
        self.assertNotEqual(stored, h5py.h5t.IEEE_F16LE)

    @parameterized.named_parameters(
        ("float16", np.arange(1 << 16).astype("u2").view("f2")),
        ("float32", np.array([0x7F812345, 1, 0x80000000], "u4").view("f4")),
        ("float64", np.array([0x7FF0DEAD << 32, 1, 1 << 63], "u8").view("f8")),
        ("big_endian", np.array([1.5, -0.0, np.nan], ">f4")),
        ("int8", np.array([-128, 127], "i1")),
        ("int16", np.array([-(1 << 15), 7], "i2")),
        ("int32", np.array([[-(1 << 31)], [7]], "i4")),
        ("int64", np.array(-(1 << 63), "i8")),
        ("uint8", np.array([0, 255], "u1")),
        ("uint16", np.array([0, 65535], "u2")),
        ("uint32", np.zeros((0, 3), "u4")),
        ("uint64", np.array([(1 << 64) - 1], "u8")),
        ("bool", np.array([True, False])),
        ("complex64", np.array([1 + 2j], "c8")),
        ("complex128", np.array([1 + 2j], "c16")),
        ("bytes", np.array([b"ab", b"abcde"])),
        ("structured", np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])),
        ("date", np.array([7], h5py.opaque_dtype("M8[s]"))),
    )
    def test_native_type_is_left_to_h5py(self, value):
        hdf5_codec.write(self.file, "w", value)
        other = self.new_file("other.h5")
        other.create_dataset("w", data=value)
        self.assertEqual(self.file["w"].id.get_type(), other["w"].id.get_type())
        other.close()
        read = hdf5_codec.read(self.reopened(), "w")
        self.assertIdentical(read, value)
        contents = []
        for name in ("weights.h5", "other.h5"):
            with open(self.path(name), "rb") as file:
                contents.append(file.read())
        self.assertEqual(*contents)

    def test_string(self):
        value = np.array(["ab", "\u00e4"], object)
        dataset = hdf5_codec.write(self.file, "w", value)
        self.assertIsNotNone(h5py.check_string_dtype(dataset.dtype))
        read = hdf5_codec.read(self.reopened(), "w")
        self.assertEqual([item.decode("utf8") for item in read], list(value))


class ForeignFileTest(CodecTestCase):
    """What others have written."""

    @parameterized.named_parameters(
        ("little_endian", h5py.h5t.IEEE_F32LE),
        ("big_endian", h5py.h5t.IEEE_F32BE),
    )
    def test_byte_order(self, base):
        value = bit_patterns("bfloat16")
        value = value[~np.isnan(value.astype("float32"))]
        file_type = bfloat16_type(base)
        dataset = self.file.create_dataset(
            "w", value.shape, dtype=h5py.Datatype(file_type)
        )
        self.assertEqual(dataset.id.get_type().get_order(), base.get_order())
        # HDF5 converts.
        dataset[...] = value.astype("float32")
        self.assertIdentical(hdf5_codec.read(self.reopened(), "w"), value)

    @parameterized.named_parameters(
        ("contiguous", {}),
        ("chunked", {"chunks": (3, 4)}),
        ("gzip", {"compression": "gzip"}),
        ("lzf", {"compression": "lzf"}),
        ("shuffle", {"shuffle": True}),
        ("fletcher32", {"fletcher32": True}),
        ("all", {"compression": 9, "shuffle": True, "fletcher32": True}),
        ("resizable", {"maxshape": (None, None)}),
    )
    def test_storage(self, storage):
        value = some("bfloat16", (20, 30))
        expected = value.copy()
        expected[np.isnan(value.astype("float32"))] = 0
        number = self.file.create_dataset(
            "number",
            value.shape,
            dtype=h5py.Datatype(bfloat16_type()),
            **storage,
        )
        number[...] = expected.astype("float32")
        self.file.create_dataset("blob", data=value.view("V2"), **storage)
        file = self.reopened()
        self.assertIdentical(hdf5_codec.read(file, "number"), expected)
        self.assertIdentical(hdf5_codec.read(file, "blob"), value)

    def test_never_written(self):
        dtype = h5py.Datatype(bfloat16_type())
        self.file.create_dataset("zero", (3,), dtype=dtype)
        self.file.create_dataset("zero_chunked", (3,), dtype=dtype, chunks=(2,))
        for name in self.file:
            self.assertIdentical(
                hdf5_codec.read(self.file, name), np.zeros(3, BFLOAT16)
            )

    @parameterized.named_parameters(each(INTEGERS))
    def test_integer_with_padding_of_another_writer(self, name):
        value = bit_patterns(name)
        dataset = hdf5_codec.write(self.file, "w", np.zeros_like(value))
        # HDF5 converts, and pads with zeros where NumPy has sign bits.
        dataset[...] = value.astype("int8")
        read = hdf5_codec.read(self.reopened(), "w")
        self.assertEqual(read.dtype, value.dtype)
        np.testing.assert_array_equal(read.astype("i1"), value.astype("i1"))

    @parameterized.named_parameters(
        ("bare", None),
        ("label", "bfloat16"),
        ("label_in_bytes", b"bfloat16"),
        ("label_in_numpy_bytes", np.bytes_(b"bfloat16")),
    )
    def test_two_byte_blob(self, label):
        value = bit_patterns("bfloat16").reshape(256, 256)
        dataset = self.file.create_dataset("w", data=value.view("V2"))
        if label is not None:
            dataset.attrs["dtype"] = label
        self.assertIdentical(hdf5_codec.read(self.reopened(), "w"), value)

    def test_blob_that_h5py_makes_of_bfloat16(self):
        value = bit_patterns("bfloat16")
        self.file.create_dataset("w", data=value)
        self.assertIdentical(hdf5_codec.read(self.reopened(), "w"), value)

    @parameterized.named_parameters(each(ONE_BYTE))
    def test_labelled_one_byte_blob(self, name):
        value = bit_patterns(name)
        dataset = self.file.create_dataset("w", data=value.view("V1"))
        dataset.attrs["dtype"] = name
        self.assertIdentical(hdf5_codec.read(self.reopened(), "w"), value)

    @parameterized.named_parameters(each(ONE_BYTE))
    def test_bare_one_byte_blob_takes_the_type_of_the_variable(self, name):
        value = bit_patterns(name).reshape(16, 16)
        self.file.create_dataset("w", data=value.view("V1"))
        read = hdf5_codec.read(self.reopened(), "w")
        self.assertIdentical(read, value.view("V1"))
        self.assertIdentical(hdf5_codec.cast(read, value.dtype), value)

    @parameterized.named_parameters(
        ("float32", "float32"),
        ("bfloat16", BFLOAT16),
        ("int8", "int8"),
    )
    def test_bare_one_byte_blob_for_another_variable(self, dtype):
        self.file.create_dataset("layer/w", data=np.zeros(3, "V1"))
        read = hdf5_codec.read(self.reopened(), "layer/w")
        with self.assertRaises(ValueError) as caught:
            hdf5_codec.cast(read, dtype)
        message = str(caught.exception)
        expected = [self.path("weights.h5"), "'/layer/w'", str(np.dtype(dtype))]
        for text in ONE_BYTE + expected:
            self.assertIn(text, message)
        self.assertNotIn("complex32", message)

    @parameterized.named_parameters(
        ("unknown", 2, "bfloat17"),
        ("not_a_name", 2, 7),
        ("empty_list", 2, np.zeros((0,))),
        ("module_attribute", 2, "__name__"),
        ("class_that_is_no_dtype", 8, "finfo"),
        ("numpy_object", 8, "object"),
        ("too_small", 2, "float8_e5m2"),
        ("too_large", 1, "bfloat16"),
        ("odd_size", 3, "bfloat16"),
    )
    def test_wrong_label(self, itemsize, label):
        blob = np.zeros(4, f"V{itemsize}")
        dataset = self.file.create_dataset("layer/w", data=blob)
        dataset.attrs["dtype"] = label
        with self.assertRaises(ValueError) as caught:
            hdf5_codec.read(self.reopened(), "layer/w")
        for text in (self.path("weights.h5"), "'/layer/w'"):
            self.assertIn(text, str(caught.exception))

    @parameterized.named_parameters(
        ("float32", "f4"), ("blob", "V2"), ("one_byte_blob", "V1")
    )
    def test_null_dataspace(self, dtype):
        self.file.create_dataset("layer/w", data=h5py.Empty(dtype))
        with self.assertRaises(ValueError) as caught:
            hdf5_codec.read(self.reopened(), "layer/w")
        for text in (self.path("weights.h5"), "'/layer/w'"):
            self.assertIn(text, str(caught.exception))

    def test_null_dataspace_of_bfloat16(self):
        space = h5py.h5s.create(h5py.h5s.NULL)
        h5py.h5d.create(self.file.id, b"w", bfloat16_type(), space)
        with self.assertRaisesRegex(ValueError, "'/w'"):
            hdf5_codec.read(self.reopened(), "w")


class RawReadTest(CodecTestCase):
    """Bytes are copied, once, and never converted."""

    @parameterized.named_parameters(
        each_with(FLOATS + INTEGERS, {"number": False, "opaque": True})
    )
    def test_nothing_goes_through_h5py_conversion(self, name, opaque):
        value = bit_patterns(name)
        refuse = mock.Mock(side_effect=AssertionError("converted"))
        with mock.patch.multiple(
            h5py.Dataset,
            __getitem__=refuse,
            __setitem__=refuse,
            __array__=refuse,
            read_direct=refuse,
            write_direct=refuse,
        ):
            hdf5_codec.write(self.file, "w", value, opaque=opaque)
            self.assertIdentical(hdf5_codec.read(self.file, "w"), value)

    def test_nan_payloads(self):
        payloads = np.array(
            [0x7F81, 0x7FC0, 0x7FFF, 0xFF81, 0xFFFF, 0x7FAA], "u2"
        )
        hdf5_codec.write(self.file, "w", payloads.view(BFLOAT16))
        read = hdf5_codec.read(self.reopened(), "w")
        np.testing.assert_array_equal(read.view("u2"), payloads)

    @parameterized.named_parameters(each(NAMES))
    def test_result_is_the_callers_own(self, name):
        hdf5_codec.write(self.file, "w", some(name, (4, 5)))
        first = hdf5_codec.read(self.file, "w")
        second = hdf5_codec.read(self.file, "w")
        self.assertFalse(np.shares_memory(first, second))
        self.assertTrue(owner(first).flags.owndata)
        self.assertTrue(first.flags.writeable)
        self.assertTrue(first.flags.c_contiguous)
        self.assertEqual(owner(first).nbytes, first.nbytes)

    @parameterized.named_parameters(("number", False), ("opaque", True))
    def test_no_needless_copy(self, opaque):
        value = np.ones(1 << 24, BFLOAT16)

        def peak(action):
            tracemalloc.start()
            try:
                result = action()
                return tracemalloc.get_traced_memory()[1], result
            finally:
                tracemalloc.stop()

        written, _ = peak(
            lambda: hdf5_codec.write(self.file, "w", value, opaque=opaque)
        )
        self.assertLess(written, 0.1 * value.nbytes)
        read, result = peak(lambda: hdf5_codec.read(self.file, "w"))
        self.assertLess(read, 1.2 * value.nbytes)
        self.assertIdentical(result, value)


class GateTest(CodecTestCase):
    """Only data in the file itself is read."""

    def setUp(self):
        super().setUp()
        secret = self.new_file("secret.h5")
        secret.create_dataset("w", data=np.ones(4, "f4"))
        secret.create_dataset("group/w", data=np.ones(4, "f4"))
        secret.close()
        self.value = some("bfloat16", (4,))
        hdf5_codec.write(self.file, "real/w", self.value)

    def assertRefused(self, name, path=None, function=hdf5_codec.read):
        with self.assertRaises(ValueError) as caught:
            function(self.file, name)
        message = str(caught.exception)
        self.assertIn("Not allowed", message)
        self.assertIn(f"'{path or '/' + name}'", message)
        self.assertIn(self.path("weights.h5"), message)

    @parameterized.named_parameters(
        ("float32", "f4"),
        ("blob", "V2"),
        ("bfloat16", h5py.Datatype(bfloat16_type())),
    )
    def test_external_dataset(self, dtype):
        with open(self.path("raw.bin"), "wb") as file:
            file.write(b"secret..secret..")
        self.file.create_dataset(
            "layer/w",
            (4,),
            dtype=dtype,
            external=[(self.path("raw.bin"), 0, h5py.h5f.UNLIMITED)],
        )
        self.assertRefused("layer/w")

    @parameterized.named_parameters(("float32", "f4"), ("blob", "V2"))
    def test_virtual_dataset(self, dtype):
        layout = h5py.VirtualLayout((4,), dtype)
        layout[...] = h5py.VirtualSource(self.path("secret.h5"), "w", (4,))
        self.file.create_virtual_dataset("layer/w", layout)
        self.assertRefused("layer/w")

    def test_soft_link_to_dataset(self):
        self.file["link"] = h5py.SoftLink("/real/w")
        self.assertRefused("link")

    def test_soft_link_to_group(self):
        self.file["link"] = h5py.SoftLink("/real")
        self.assertRefused("link/w", "/link")
        self.assertRefused("link", function=hdf5_codec.open_group)

    def test_external_link_to_dataset(self):
        self.file["link"] = h5py.ExternalLink(self.path("secret.h5"), "/w")
        self.assertRefused("link")

    def test_external_link_to_group(self):
        self.file["layer/link"] = h5py.ExternalLink(
            self.path("secret.h5"), "/group"
        )
        self.assertRefused("layer/link/w", "/layer/link")
        self.assertRefused("layer/link", function=hdf5_codec.open_group)

    @parameterized.named_parameters(
        ("soft", h5py.SoftLink("/nowhere")),
        ("external", h5py.ExternalLink("nowhere.h5", "/w")),
    )
    def test_link_to_nothing(self, link):
        self.file["link"] = link
        self.assertRefused("link")

    def test_hard_link(self):
        self.file["link"] = self.file["real/w"]
        self.assertIdentical(hdf5_codec.read(self.file, "link"), self.value)

    @parameterized.named_parameters(
        ("group_for_dataset", hdf5_codec.read, "real"),
        ("group_for_open_dataset", hdf5_codec.open_dataset, "real"),
        ("dataset_for_group", hdf5_codec.open_group, "real/w"),
        ("dataset_on_the_way", hdf5_codec.read, "real/w/x"),
        ("type_for_dataset", hdf5_codec.read, "type"),
        ("type_for_group", hdf5_codec.open_group, "type"),
    )
    def test_something_else(self, function, name):
        self.file["type"] = np.dtype("f4")
        with self.assertRaises(ValueError) as caught:
            function(self.file, name)
        expected = "Dataset" if function != hdf5_codec.open_group else "Group"
        if name == "real/w/x":
            expected = "Group"
        self.assertIn(expected, str(caught.exception))
        self.assertIn(self.path("weights.h5"), str(caught.exception))

    @parameterized.named_parameters(
        ("dataset", hdf5_codec.read, "none"),
        ("dataset_in_group", hdf5_codec.read, "real/none"),
        ("group_on_the_way", hdf5_codec.open_dataset, "none/w"),
        ("group", hdf5_codec.open_group, "none"),
        ("group_in_group", hdf5_codec.open_group, "real/none"),
        ("no_name", hdf5_codec.read, ""),
        ("slash", hdf5_codec.read, "/"),
        ("group_itself", hdf5_codec.read, "."),
        ("group_itself_as_group", hdf5_codec.open_group, "."),
    )
    def test_missing(self, function, name):
        missing = "none" if "none" in name else name.strip("/")
        with self.assertRaisesRegex(KeyError, re.escape(f"'{missing}'")):
            function(self.file, name)

    @parameterized.named_parameters(
        ("bfloat16", h5py.Datatype(bfloat16_type()), 2),
        ("blob", "V2", 2),
        ("float32", "f4", 4),
    )
    def test_shape_bomb(self, dtype, itemsize):
        count = (1 << 32) // itemsize
        for name, size in (("most", count), ("bomb", count + 1)):
            self.file.create_dataset(
                f"layer/{name}", (size,), dtype=dtype, chunks=(1 << 10,)
            )
        # Four gibibytes may be declared, in the file's own bytes.
        self.assertEqual(
            hdf5_codec.open_dataset(self.file, "layer/most").shape, (count,)
        )
        self.assertRefused("layer/bomb", function=hdf5_codec.open_dataset)
        self.assertRefused("layer/bomb")

    def test_shape_bomb_whose_dimensions_overflow(self):
        self.file.create_dataset(
            "w", (1 << 31, 1 << 31, 1 << 1), dtype="V2", chunks=(1, 1, 2)
        )
        self.assertRefused("w")

    def test_large_and_well_compressed(self):
        with mock.patch.object(hdf5_codec, "_DECLARED_BYTES_FLOOR", 1000):
            zeros = np.zeros(1 << 16, "V2")
            self.file.create_dataset(
                "w", data=zeros, compression="gzip", chunks=(1 << 12,)
            )
            self.assertIdentical(
                hdf5_codec.read(self.file, "w"), zeros.view(BFLOAT16)
            )


class CastTest(CodecTestCase):
    @parameterized.named_parameters(
        each(["float16", "float32", "float64", "int64", "bool"] + NAMES)
    )
    def test_equal_dtype_is_no_copy(self, name):
        value = np.ones((2, 3), "float32").astype(name)
        self.assertIs(hdf5_codec.cast(value, value.dtype), value)
        self.assertIs(hdf5_codec.cast(value, value.dtype.type), value)

    @parameterized.named_parameters(("float32", "f4"), ("float64", "f8"))
    def test_bfloat16_to_wider_float(self, dtype):
        bits = np.arange(1 << 16).astype("u4")
        expected = (bits << 16).view("f4").astype(dtype)
        value = hdf5_codec.cast(bit_patterns("bfloat16"), dtype)
        self.assertEqual(value.dtype, np.dtype(dtype))
        np.testing.assert_array_equal(value, expected)

    @parameterized.named_parameters(("float32", "f4"), ("float64", "f8"))
    def test_bfloat16_from_wider_float(self, dtype):
        value = bit_patterns("bfloat16")
        value = value[~np.isnan(value.astype("f4"))]
        wide = (value.view("u2").astype("u4") << 16).view("f4").astype(dtype)
        self.assertIdentical(hdf5_codec.cast(wide, BFLOAT16), value)

    @parameterized.named_parameters(
        ("down", 1 + 2**-9, 0x3F80),
        ("tie_to_even_down", 1 + 2**-8, 0x3F80),
        ("tie_to_even_up", 1 + 3 * 2**-8, 0x3F82),
        ("up", 1 + 2**-8 + 2**-12, 0x3F81),
    )
    def test_bfloat16_rounds_to_nearest(self, number, bits):
        for dtype in ("f4", "f8"):
            value = hdf5_codec.cast(np.array([number], dtype), BFLOAT16)
            self.assertEqual(value.view("u2")[0], bits)

    def test_bfloat16_and_float16(self):
        exact = np.array([0.0, -0.0, 1.5, -3.140625, 65280.0, np.inf], "f4")
        narrow, half = exact.astype(BFLOAT16), exact.astype("f2")
        self.assertIdentical(hdf5_codec.cast(narrow, "float16"), half)
        self.assertIdentical(hdf5_codec.cast(half, BFLOAT16), narrow)

    @parameterized.named_parameters(
        each([name for name in NAMES if name.startswith("float")])
    )
    def test_small_float_to_bfloat16(self, name):
        value = bit_patterns(name)
        read = hdf5_codec.cast(value, BFLOAT16)
        self.assertEqual(read.dtype, BFLOAT16)
        np.testing.assert_array_equal(
            read.astype("float32"), value.astype("float32")
        )

    @parameterized.named_parameters(
        each_with(
            WITH_ONE,
            {name: name for name in WITH_ONE},
        )
    )
    def test_between(self, source, target):
        ones = np.ones((2, 2), "float32")
        value = hdf5_codec.cast(ones.astype(source), target)
        self.assertEqual(value.dtype, np.dtype(target))
        self.assertEqual(value.shape, ones.shape)
        # Not the bytes: ml_dtypes 0.2 leaves the unused bits of int4 as they
        # happen to be.
        np.testing.assert_array_equal(value.astype("float32"), ones)

    @parameterized.named_parameters(
        each_with(COMPLEX, {name: name for name in COMPLEX})
    )
    def test_complex_keeps_its_imaginary_part(self, source, target):
        numbers = np.array([1 + 2j, -3 - 4j], "complex64")
        self.assertIdentical(
            hdf5_codec.cast(numbers.astype(source), target),
            numbers.astype(target),
        )

    @parameterized.named_parameters(("bfloat16", BFLOAT16), ("float32", "f4"))
    def test_array_of_the_other_byte_order(self, dtype):
        value = np.array([1.5, -2.0], BFLOAT16)
        self.assertIdentical(
            hdf5_codec.cast(big_endian_array(value), dtype),
            value.astype(dtype),
        )

    def test_raw_bytes_for_bfloat16_are_no_copy(self):
        value = some("bfloat16", (3, 4))
        read = hdf5_codec.cast(value.view("V2"), BFLOAT16)
        self.assertIdentical(read, value)
        self.assertTrue(np.shares_memory(read, value))

    @parameterized.named_parameters(
        ("float16", "float16"), ("float32", "float32"), ("float64", "float64")
    )
    def test_raw_bytes_for_float(self, dtype):
        numbers = np.array([0.0, 1.5, -2.0, np.inf], dtype)
        raw = numbers.astype(BFLOAT16).view("V2")
        self.assertIdentical(hdf5_codec.cast(raw, dtype), numbers)

    @parameterized.named_parameters(each(ARCHIVED))
    def test_through_numpy_archive(self, name):
        value = some(name, (3, 4))
        np.savez(self.path("weights.npz"), w=value)
        with np.load(self.path("weights.npz")) as archive:
            read = hdf5_codec.cast(archive["w"], value.dtype)
        self.assertIdentical(read, value)

    @parameterized.named_parameters(
        ("three_bytes", 3, "float32", "none known"),
        ("four_bytes", 4, "float32", "complex32"),
        ("two_bytes_for_one", 1, "int8", "float8_e4m3fn"),
    )
    def test_raw_bytes_without_type(self, itemsize, dtype, candidates):
        with self.assertRaisesRegex(ValueError, candidates):
            hdf5_codec.cast(np.zeros(3, f"V{itemsize}"), dtype)

    @parameterized.named_parameters(("number", False), ("opaque", True))
    def test_dataset(self, opaque):
        value = some("bfloat16", (3, 4))
        dataset = hdf5_codec.write(self.file, "w", value, opaque=opaque)
        self.assertIdentical(hdf5_codec.cast(dataset, BFLOAT16), value)

    def test_list_and_scalar(self):
        one = np.ones((), BFLOAT16)
        self.assertIdentical(hdf5_codec.cast(1, BFLOAT16), one)
        self.assertIdentical(hdf5_codec.cast([1.0], BFLOAT16), one[None])

    def test_impossible(self):
        with self.assertRaises((TypeError, ValueError)):
            hdf5_codec.cast(np.array(["a"]), BFLOAT16)


class PlainNumbersTest(parameterized.TestCase):
    """A config holds numbers of Python."""

    @parameterized.named_parameters(each(FLOATS + INTEGERS + INEXACT))
    def test_to_python(self, name):
        value = bit_patterns(name)[:256]
        kind = int if name in INTEGERS + ["int1"] else float
        if name in COMPLEX:
            kind = complex
        numbers = hdf5_codec.to_python(value)
        self.assertEqual({type(number) for number in numbers}, {kind})
        wide = {int: "int8", float: "float32", complex: "complex64"}[kind]
        np.testing.assert_array_equal(np.array(numbers), value.astype(wide))
        self.assertIs(type(hdf5_codec.to_python(value[0])), kind)

    def test_to_python_keeps_the_shape(self):
        value = np.array([[1.5, -2.0]], BFLOAT16)
        self.assertEqual(hdf5_codec.to_python(value), [[1.5, -2.0]])
        self.assertEqual(hdf5_codec.to_python(np.float64(0.1)), 0.1)
        self.assertEqual(hdf5_codec.to_python(np.arange(2)), [0, 1])

    def test_plain_scalars(self):
        one = ml_dtypes.bfloat16(1.5)
        self.assertIs(type(hdf5_codec.plain_scalars(one)), float)
        config = ["a", one, (np.array(one), [one, None])]
        plain = hdf5_codec.plain_scalars(config)
        self.assertEqual(plain, ["a", 1.5, (1.5, [1.5, None])])
        self.assertEqual(json.dumps(plain), '["a", 1.5, [1.5, [1.5, null]]]')

    @parameterized.named_parameters(
        ("float32", np.float32(1.5)),
        ("string", "bfloat16"),
        ("dict", {"a": 1}),
        ("array", np.ones(2, BFLOAT16)),
        ("named_tuple", hdf5_codec.Opaque(ml_dtypes.bfloat16(1))),
    )
    def test_all_else_stays(self, value):
        self.assertIs(hdf5_codec.plain_scalars(value), value)


class NumpyTypeTest(CodecTestCase):
    """TensorFlow before 2.14 registers a bfloat16 of its own."""

    def test_type_of_the_caller(self):
        # float16 stands for a second bfloat16: also two bytes.
        asked = []

        def numpy_type(name):
            asked.append(name)
            return np.float16

        value = bit_patterns("bfloat16")
        for opaque in (False, True):
            dataset = hdf5_codec.write(
                self.file, f"opaque_{opaque}", value, opaque=opaque
            )
            self.assertIdentical(
                hdf5_codec.read_dataset(dataset, numpy_type), value.view("f2")
            )
        self.assertEqual(asked, ["bfloat16", "bfloat16"])

    def test_type_that_the_caller_does_not_know(self):
        def numpy_type(name):
            raise TypeError(name)

        value = bit_patterns("float8_e4m3fn")
        hdf5_codec.write(self.file, "w", value)
        read = hdf5_codec.read(self.file, "w", numpy_type)
        self.assertIdentical(read, value)

    @parameterized.named_parameters(("number", False), ("opaque", True))
    def test_ml_dtypes_is_not_needed_then(self, opaque):
        value = bit_patterns("bfloat16")
        hdf5_codec.write(self.file, "w", value, opaque=opaque)
        with mock.patch.dict(sys.modules, ml_dtypes=None):
            read = hdf5_codec.read(self.file, "w", lambda name: np.float16)
            # NumPy finds a type that anyone has registered.
            registered = hdf5_codec.read(self.file, "w")
        self.assertIdentical(read, value.view("f2"))
        self.assertIdentical(registered, value)

    def test_type_of_another_size(self):
        hdf5_codec.write(self.file, "w", some("bfloat16", (2,)), opaque=True)
        with self.assertRaisesRegex(ValueError, "'/w'"):
            hdf5_codec.read(self.file, "w", lambda name: np.float32)

    def test_label_that_means_objects_to_the_caller(self):
        # TensorFlow's types for strings and resources are Python objects.
        dataset = self.file.create_dataset("w", data=np.zeros(2, "V8"))
        dataset.attrs["dtype"] = "string"
        with self.assertRaisesRegex(ValueError, "'/w'"):
            hdf5_codec.read(self.file, "w", {"string": object}.__getitem__)

    def test_native_type_is_not_asked_for(self):
        refuse = mock.Mock(side_effect=AssertionError("asked"))
        hdf5_codec.write(self.file, "w", np.ones(3, "float16"))
        read = hdf5_codec.read(self.file, "w", refuse)
        self.assertIdentical(read, np.ones(3, "float16"))


class VariableStoreTest(CodecTestCase):
    def setUp(self):
        super().setUp()
        self.store = hdf5_codec.VariableStore(self.file.create_group("vars"))
        self.values = {
            "0": some("bfloat16", (2, 3)),
            "1": np.array(7, "int64"),
            "2": some("float8_e4m3fn", (4,)),
        }
        for key, value in self.values.items():
            self.store[key] = value

    def test_items(self):
        self.assertEqual(list(self.store), ["0", "1", "2"])
        self.assertEqual(list(self.store.keys()), ["0", "1", "2"])
        self.assertLen(self.store, 3)
        self.assertLen(self.store.keys(), 3)
        for key, value in self.store.items():
            self.assertIdentical(value, self.values[key])
        for value, expected in zip(self.store.values(), self.values.values()):
            self.assertIdentical(value, expected)

    def test_membership(self):
        self.assertIn("0", self.store)
        self.assertNotIn("3", self.store)
        self.assertIsNone(self.store.get("3"))
        self.assertIdentical(self.store.get("0"), self.values["0"])
        with self.assertRaises(KeyError):
            self.store["3"]

    def test_deletion(self):
        del self.store["1"]
        self.assertEqual(list(self.file["vars"]), ["0", "2"])
        self.assertIdentical(self.store.pop("0"), self.values["0"])
        self.assertEqual(list(self.store), ["2"])
        with self.assertRaises(KeyError):
            del self.store["1"]

    def test_the_rest_is_the_groups(self):
        self.store.attrs["name"] = "layer"
        self.store.create_dataset("own", data=[1, 2])
        self.assertEqual(self.file["vars"].attrs["name"], "layer")
        self.assertEqual(self.store.name, "/vars")
        self.assertIdentical(self.store["own"], np.array([1, 2]))
        with self.assertRaises(AttributeError):
            self.store.no_such_attribute

    def test_gate(self):
        self.file["vars/link"] = h5py.SoftLink("/vars/0")
        with self.assertRaisesRegex(ValueError, "Not allowed"):
            self.store["link"]

    def test_numpy_type(self):
        store = hdf5_codec.VariableStore(
            self.file["vars"], {"bfloat16": np.float16}.__getitem__
        )
        self.assertIdentical(store["0"], self.values["0"].view("f2"))


class CheckMembersTest(CodecTestCase):
    def test_own_members(self):
        self.file.create_group("a").create_dataset("w", data=np.ones(2))
        hdf5_codec.check_members(self.file)

    @parameterized.named_parameters(
        ("soft", h5py.SoftLink("/a")),
        ("external", h5py.ExternalLink("other.h5", "/a")),
    )
    def test_link(self, link):
        self.file.create_group("a")
        self.file["b"] = link
        with self.assertRaisesRegex(ValueError, "Not allowed.*'/b'"):
            hdf5_codec.check_members(self.file)


class UniqueNamesTest(parameterized.TestCase):
    @parameterized.named_parameters(
        ("none", [], []),
        ("distinct", ["b", "a"], ["b", "a"]),
        ("twice", ["a", "a"], ["a", "a_1"]),
        ("thrice", ["a", "b", "a", "a"], ["a", "b", "a_1", "a_2"]),
        ("taken_before", ["a_1", "a", "a"], ["a_1", "a", "a_2"]),
        ("taken_between", ["a", "a_1", "a"], ["a", "a_1", "a_2"]),
    )
    def test_names(self, names, expected):
        self.assertEqual(hdf5_codec.unique_names(iter(names)), expected)

    def test_name_that_occurs_once_stays(self):
        names = hdf5_codec.unique_names(["a", "a", "a_1"])
        self.assertEqual(names[2], "a_1")
        self.assertLen(set(names), 3)


if __name__ == "__main__":
    absltest.main()
