"""Recomputes which words adapt masks: Philox, a text's words, and the choice among them."""
MASKING, OF_WORDS, OF_PIECES, EVALUATION = 7, 0, 1, 0xFFFFFFFF
LOW = 0xFFFFFFFF


def philox(key, counter):
    low, high = key
    c = list(counter)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ low, b & LOW, (a >> 32) ^ c[3] ^ high, a & LOW]
        low, high = (low + 0x9E3779B9) & LOW, (high + 0xBB67AE85) & LOW
    return c


def key_of(seed):
    return philox((seed & LOW, seed >> 32), (MASKING, 0x66696E65, 0x74756E65, 0))[:2]


def unit_interval(bits):
    return (bits + 0.5) * 2.0 ** -32


def hidden(pieces, special, sample, epoch, seed=42, probability=0.15, whole_words=True, added=()):
    """Places of the masked pieces (strings), of WordPiece, byte-level BPE or Unigram; special: pieces that are never masked.
    added: pieces that begin a word of their own."""
    key = key_of(seed)
    if not whole_words:
        return [i for i, piece in enumerate(pieces) if piece not in special
                and unit_interval(philox(key, (i, sample, epoch, OF_PIECES))[0]) < probability]
    # BPE and Unigram mark a word's first piece, WordPiece the others.
    mark = next((mark for mark in "\u0120\u2581" if any(piece.startswith(mark) for piece in pieces)), None)
    words, is_open = [], False
    for i, piece in enumerate(pieces):
        if piece in special:
            is_open = False
        elif is_open and piece not in added and (not piece.startswith(mark) if mark else piece.startswith("##")):
            words[-1].append(i)
        else:
            words.append([i])
            is_open = True
    words = [w for _, w in sorted((philox(key, (n, sample, epoch, OF_WORDS))[0], w) for n, w in enumerate(words))]
    budget, places = max(1, round(len(pieces) * probability)), []
    for word in words:
        if len(places) + len(word) <= budget:
            places += word
    if not places and words:
        places = words[0]
    return sorted(places)


def replacement(own, mask, vocabulary, place, sample, epoch, seed=42):
    bits = philox(key_of(seed), (place, sample, epoch, OF_PIECES))
    draw = unit_interval(bits[1])
    return mask if draw < 0.8 else bits[2] * vocabulary >> 32 if draw < 0.9 else own

