/** Reads from the head of a Linux executable its target machine and C library. */

import { closeSync, openSync, readSync } from "node:fs";

export interface Executable {
  arch: "x64" | "arm64" | "other";
  libc: "glibc" | "musl" | "none";
}

const machines: Record<number, Executable["arch"]> = { 62: "x64", 183: "arm64" };
const interpreterSegment = 3;

/** @throws when the file is no 64-bit little-endian ELF file. */
export function readExecutable(path: string): Executable {
  const file = openSync(path, "r");
  try {
    const header = bytesAt(file, 0, 64);
    if (header.readUInt32BE(0) !== 0x7f454c46 || header[4] !== 2 || header[5] !== 1) {
      throw new Error(`${path} is no executable for 64-bit Linux.`);
    }
    const arch = machines[header.readUInt16LE(18)] ?? "other";
    return { arch, libc: getLibc(getInterpreter(file, header)) };
  } finally {
    closeSync(file);
  }
}

/** The loader that the kernel starts first; its name tells the C library. */
function getInterpreter(file: number, header: Buffer): string {
  const offset = Number(header.readBigUInt64LE(32));
  const entrySize = header.readUInt16LE(54);
  for (let index = 0; index < header.readUInt16LE(56); index++) {
    const entry = bytesAt(file, offset + index * entrySize, entrySize);
    if (entry.readUInt32LE(0) !== interpreterSegment) continue;
    return bytesAt(file, Number(entry.readBigUInt64LE(8)), Number(entry.readBigUInt64LE(32))).toString();
  }
  return "";
}

function getLibc(interpreter: string): Executable["libc"] {
  if (interpreter === "") return "none";
  return interpreter.includes("ld-musl") ? "musl" : "glibc";
}

function bytesAt(file: number, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  readSync(file, bytes, 0, length, position);
  return bytes;
}
