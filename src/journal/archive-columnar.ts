/**
 * Columnar layout of journal text: values of a name are adjacent, so it compresses to less than two thirds.
 *
 * Lines are split before each `,"` into parts: a name, up to `":`, and a value. The sequence of names of a line is its
 * template. The values of a name form a column, one per line. Nothing is parsed, so any bytes are restored exactly.
 *
 *   {"columns":{"names":2,"templates":1,"lines":3,"bytes":46}}    bytes after this line
 *   {"seq":                                                       one line per name
 *   uuid":
 *   0 1                                                           one line per template: indexes of names
 *   0                                                             one line per line: index of its template
 *   …                                                             values of the first name, then of the second …
 */

/** Chunk size: about 50 ms of blocking work. Larger chunks compress slightly better. */
const chunkBytes = 2 * 1024 * 1024;
/** Chunks with more names or transitions stay in rows: columns only pay off for similar lines. */
const namesMax = 2_000;
const statesMax = 20_000;

const newline = 0x0a;
const comma = 0x2c;
const quote = 0x22;
const colon = 0x3a;
const latin1 = "latin1";

/** Encodes text as columnar chunks for `decodeColumnar`. Each chunk is verified by decoding it. */
export function* encodeColumnar(text: Buffer): Generator<Buffer> {
  for (let start = 0; start < text.length; ) {
    const lineEnd = text.indexOf(newline, Math.min(start + chunkBytes, text.length));
    const end = lineEnd === -1 ? text.length : lineEnd + 1;
    const chunk = text.subarray(start, end);
    // A very long line would take several times its size in memory.
    const columnar = chunk.length > 2 * chunkBytes ? undefined : new ColumnEncoder().encode(chunk);
    yield columnar !== undefined && decodeColumnar(columnar).equals(chunk)
      ? columnar
      : Buffer.concat([head({ rows: { bytes: chunk.length } }), chunk]);
    start = end;
  }
}

/** Restores the text up to the first truncated or invalid byte. */
export function decodeColumnar(bytes: Buffer): Buffer {
  const texts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const headEnd = bytes.indexOf(newline, at);
    const read = headEnd === -1 ? undefined : headIn(bytes.toString(latin1, at, headEnd));
    if (read === undefined) break;
    const end = headEnd + 1 + read.bytes;
    const body = bytes.subarray(headEnd + 1, end);
    const text = read.columns === undefined ? body : getLines(body, read.columns);
    if (text === undefined || body.length < read.bytes) break;
    texts.push(text);
    at = end;
  }
  return Buffer.concat(texts);
}

interface ColumnShape {
  names: number;
  templates: number;
  lines: number;
  bytes: number;
}

/** Header line of a chunk; without names, the chunk is in rows. */
type Head = { columns: ColumnShape } | { rows: { bytes: number } };

function head(fields: Head): Buffer {
  return Buffer.from(`${JSON.stringify(fields)}\n`);
}

function headIn(line: string): { bytes: number; columns?: ColumnShape } | undefined {
  try {
    const read = JSON.parse(line) as Head;
    const { bytes } = "columns" in read ? read.columns : read.rows;
    if (!Number.isSafeInteger(bytes) || bytes < 0) return undefined;
    return "columns" in read ? { bytes, columns: read.columns } : { bytes };
  } catch {
    return undefined;
  }
}

function getLines(body: Buffer, shape: ColumnShape): Buffer | undefined {
  const all = body.toString(latin1).split("\n");
  let at = 0;
  const take = (count: number) => {
    at += count;
    return all.slice(at - count, at);
  };
  const names = take(shape.names);
  const templates = take(shape.templates).map((line) => line.split(" ").map(Number));
  const ids = take(shape.lines).map(Number);
  const counts = new Array<number>(names.length).fill(0);
  for (const id of ids) for (const name of templates[id] ?? []) counts[name]! += 1;
  const positions = counts.map((count) => {
    at += count;
    return at - count;
  });
  // The last line break ends the last value.
  if (at !== all.length - 1) return undefined;
  const lines = ids.map((id) =>
    (templates[id] ?? []).map((name) => names[name]! + all[positions[name]!++]!).join(',"'),
  );
  return Buffer.from(lines.join("\n"), latin1);
}

/** Encoder of one chunk. */
class ColumnEncoder {
  private readonly numbers = new Map<string, number>();
  private readonly names: Buffer[] = [];
  private readonly columns: Column[] = [];
  /** By name: the name that followed it last time. */
  private readonly following: number[] = [];
  /** Transitions between states; a state is the sequence of names read so far in a line. */
  private readonly steps: Map<number, number>[] = [new Map()];
  private readonly lastStep: { name: number; state: number }[] = [{ name: -1, state: -1 }];
  private readonly templateByState: number[] = [-1];
  private readonly templates: string[] = [];
  private readonly ids: number[] = [];
  /** Names of the current line. */
  private readonly path: number[] = [];

  /** @returns undefined if the lines are too different */
  encode(text: Buffer): Buffer | undefined {
    for (let at = 0; at <= text.length; ) {
      at = this.line(text, at);
      if (this.names.length > namesMax || this.steps.length > statesMax) return undefined;
    }
    const body = Buffer.concat([
      ...this.names.map((name) => Buffer.concat([name, Buffer.of(newline)])),
      Buffer.from([...this.templates, ...this.ids, ""].join("\n")),
      ...this.columns.map((column) => column.bytes),
    ]);
    const shape = { names: this.names.length, templates: this.templates.length, lines: this.ids.length };
    return Buffer.concat([head({ columns: { ...shape, bytes: body.length } }), body]);
  }

  /** @returns the offset of the next line */
  private line(text: Buffer, from: number): number {
    let at = from;
    let state = 0;
    let before = -1;
    this.path.length = 0;
    for (;;) {
      let nameEnd = -1;
      let end = at;
      for (; end < text.length; end++) {
        const byte = text[end];
        if (byte === newline) break;
        if (byte === comma && text[end + 1] === quote) break;
        if (byte === colon && nameEnd === -1 && text[end - 1] === quote && end > at) nameEnd = end + 1;
      }
      const name = this.nameOf(text, at, nameEnd === -1 ? at : nameEnd, before);
      this.columns[name]!.add(text, nameEnd === -1 ? at : nameEnd, end);
      this.path.push(name);
      state = this.step(state, name);
      before = name;
      if (end < text.length && text[end] === comma) {
        at = end + 2;
        continue;
      }
      if (this.templateByState[state] === -1)
        this.templateByState[state] = this.templates.push(this.path.join(" ")) - 1;
      this.ids.push(this.templateByState[state]!);
      return end + 1;
    }
  }

  private nameOf(text: Buffer, start: number, end: number, before: number): number {
    const guess = this.following[before] ?? -1;
    if (guess !== -1 && isSame(this.names[guess]!, text, start, end)) return guess;
    const name = text.toString(latin1, start, end);
    let number = this.numbers.get(name);
    if (number === undefined) {
      number = this.names.push(Buffer.from(name, latin1)) - 1;
      this.numbers.set(name, number);
      this.columns.push(new Column());
    }
    if (before !== -1) this.following[before] = number;
    return number;
  }

  private step(state: number, name: number): number {
    const last = this.lastStep[state]!;
    if (last.name === name) return last.state;
    let next = this.steps[state]!.get(name);
    if (next === undefined) {
      next = this.steps.push(new Map()) - 1;
      this.steps[state]!.set(name, next);
      this.lastStep.push({ name: -1, state: -1 });
      this.templateByState.push(-1);
    }
    last.name = name;
    last.state = next;
    return next;
  }
}

function isSame(name: Buffer, text: Buffer, start: number, end: number): boolean {
  if (name.length !== end - start) return false;
  for (let n = 0; n < name.length; n++) if (name[n] !== text[start + n]) return false;
  return true;
}

/** The values of a name, each followed by a line break. */
class Column {
  private buffer = new Uint8Array(1024);
  private length = 0;

  get bytes(): Uint8Array {
    return this.buffer.subarray(0, this.length);
  }

  add(text: Buffer, start: number, end: number): void {
    const needed = this.length + end - start + 1;
    if (needed > this.buffer.length) {
      const larger = new Uint8Array(Math.max(needed, this.buffer.length * 2));
      larger.set(this.bytes);
      this.buffer = larger;
    }
    let at = this.length;
    for (let n = start; n < end; n++) this.buffer[at++] = text[n]!;
    this.buffer[at] = newline;
    this.length = needed;
  }
}
