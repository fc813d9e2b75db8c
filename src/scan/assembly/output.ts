/** Output position, AssemblyScript. 16 bytes after the output must be writable. */

export let out: usize = 0;

export function writeAt(at: usize): void {
  out = at;
}

export function byte(code: u8): void {
  store<u8>(out, code);
  out++;
}

/** Copies a text whose position and length are at `at`. */
export function copyPart(at: usize): void {
  bytes(load<u32>(at), load<u32>(at, 4));
}

/** Copies 16 bytes at a time, so up to 15 bytes more. */
export function bytes(from: usize, length: usize): void {
  let to = out;
  out += length;
  for (; to < out; to += 16) {
    v128.store(to, v128.load(from));
    from += 16;
  }
}

export function number(value: i64): void {
  let count = 1;
  for (let power: i64 = 10; value >= power; power *= 10) count++;
  out += count;
  let at = out;
  do {
    const next = value / 10;
    at--;
    store<u8>(at, <u8>(48 + (value - next * 10)));
    value = next;
  } while (value != 0);
}

/** Writes an ASCII text to an address. @returns its length */
export function writeText(at: usize, text: string): u32 {
  const length = <u32>text.length;
  for (let index: u32 = 0; index < length; index++) store<u8>(at + index, <u8>text.charCodeAt(index));
  return length;
}
