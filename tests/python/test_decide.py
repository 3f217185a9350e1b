#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a program makes of the words that members have told in one call."""
import unittest

import common
import sgp
from sgp.decide import common as numbers_of, word_of


class DecideTest(unittest.TestCase):
    OWN = word_of("mean", [1.5, -2.0])

    def test_numbers_come_back_to_the_bit(self):
        other = word_of("mean", [0.1, 1e300])
        self.assertEqual(numbers_of(self.OWN, ["n1 " + other, "n0 " + self.OWN]), {"n1": [0.1, 1e300], "n0": [1.5, -2.0]})

    def test_unlike_calls_are_told(self):
        with self.assertRaisesRegex(sgp.Error, r"n1 is at any\(\) with 1 numbers where this program is at mean\(\) with 2"):
            numbers_of(self.OWN, ["n1 " + word_of("any", [1.0])])

    def test_a_word_that_is_no_number_is_told(self):
        """A member may send any printable text in its word."""
        for text in ("mean 3ff8000000000000 zz", "mean 3ff8 3ff8000000000000", "mean  "):
            with self.subTest(text), self.assertRaisesRegex(sgp.Error, "n1 says .* which are no numbers"):
                numbers_of(self.OWN, ["n1 " + text])


if __name__ == "__main__":
    common.main()
