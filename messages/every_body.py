# SPDX-License-Identifier: Apache-2.0
"""The C++ list of all messages, from the envelope's union in the schema.

every_body.py ENVELOPE.CAPNP OUTPUT.HPP
"""

import pathlib
import re
import sys

HEADER = '''// SPDX-License-Identifier: Apache-2.0
// Made of the envelope's schema: the list of all messages.
#pragma once

#include "messages/envelope.capnp.h"

namespace troupe {{

/// Types, to be expanded.
template <class... Bodies>
struct body_list {{}};

/// Every message, in the order of the envelope: a position here is a discriminant there. A type
/// that is not listed is no message: it can neither be made nor decoded.
using every_body = body_list<
  {}>;

}} // namespace troupe
'''


def bodies_of(schema):
    """Their types by field, in order: "    token @8 :Training.Token;" has the type Token."""
    found = re.findall(r'^ +\w+ @(\d+) :(?:\w+\.)?([A-Z]\w*);$', schema.partition('union {')[2].partition('}')[0], re.MULTILINE)
    assert [int(number) for number, _ in found] == list(range(1, len(found) + 1)), 'the bodies are not in the order of their numbers'
    return [f'wire::{name}' for _, name in found]


def main(schema, header):
    pathlib.Path(header).write_text(HEADER.format(',\n  '.join(bodies_of(pathlib.Path(schema).read_text()))))


if __name__ == '__main__':
    main(*sys.argv[1:])
