"""Runs a program in a pseudo-terminal and simulates what the terminal shows."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

SEQUENCE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])")


class Screen:
    """Rows of an unbounded terminal, which may reflow its lines when the width changes."""

    def __init__(self, columns):
        self.columns, self.rows, self.goes_on = columns, [""], [False]  # goes_on: the line continues in the next row
        self.row = self.column = 0
        self.full = False  # the last column is taken; the next character begins a row

    def put(self, character):
        if self.full:
            self.goes_on[self.row] = True
            self.down()
            self.column, self.full = 0, False
        line = self.rows[self.row].ljust(self.column)
        self.rows[self.row] = line[:self.column] + character + line[self.column + 1:]
        self.full = self.column == self.columns - 1
        self.column += not self.full

    def down(self):
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append("")
            self.goes_on.append(False)

    def feed(self, text):
        while text:
            found = SEQUENCE.match(text)
            if found:
                if found[2] in "JK":
                    assert found[1] in ("", "0"), found
                    self.rows[self.row], self.goes_on[self.row] = self.rows[self.row][:self.column], False
                    if found[2] == "J":
                        del self.rows[self.row + 1:], self.goes_on[self.row + 1:]
                else:
                    assert found[2] == "m", f"what no terminal needs: {found[0]!r}"
                text = text[found.end():]
                continue
            character, text = text[0], text[1:]
            assert character != "\x1b", f"half a sequence: {text[:20]!r}"
            if character == "\r":
                self.column, self.full = 0, False
            elif character == "\n":
                self.down()
                self.full = False
            else:
                self.put(character)

    def resize(self, columns, lays_out=True):
        if not lays_out:
            self.columns, self.rows = columns, [row[:columns] for row in self.rows]
            self.column = min(self.column, columns - 1)
            return
        lines, cursor, whole = [], None, ""
        for number, row in enumerate(self.rows):
            if number == self.row:
                cursor = (len(lines), len(whole) + self.column)
            whole += row
            if not self.goes_on[number]:
                lines.append(whole)
                whole = ""
        self.columns, self.rows, self.goes_on = columns, [], []
        for number, line in enumerate(lines):
            parts = [line[at:at + columns] for at in range(0, len(line), columns)] or [""]
            if number == cursor[0]:
                self.row = len(self.rows) + min(cursor[1] // columns, len(parts) - 1)
                self.column = cursor[1] % columns
            self.rows += parts
            self.goes_on += [True] * (len(parts) - 1) + [False]


class Terminal:
    """Runs a command with a terminal for its three streams; `screen` shows the output."""

    def __init__(self, command, columns, env=None):
        self.screen, self.text = Screen(columns), ""
        self.process, self.master = pty.fork()
        if self.process == 0:
            fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
            os.execve(command[0], [str(word) for word in command], {**os.environ, "TERM": "xterm", **(env or {})})

    def read(self, seconds=0.05):
        """Feeds the received output as whole drawings; False at the end."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self.master, 65536).decode("utf-8", "replace")
        except OSError:
            return False
        self.text += piece
        self.screen.feed(piece)
        return bool(piece)

    def resize(self, columns, lays_out):
        """Call while the program is stopped, so that no output is in transit."""
        os.kill(self.process, signal.SIGSTOP)
        time.sleep(0.05)
        while select.select([self.master], [], [], 0.05)[0]:
            self.read()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.screen.resize(columns, lays_out)
        os.kill(self.process, signal.SIGCONT)

    def end(self, number=None):
        if number:
            os.kill(self.process, number)
        while self.read(60):
            pass
        _, status = os.waitpid(self.process, 0)
        os.close(self.master)
        return os.waitstatus_to_exitcode(status)
