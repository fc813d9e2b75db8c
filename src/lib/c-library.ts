/** Functions of the system's C library. */

import { dlopen, type FFIFunction } from "bun:ffi";

/** Undefined with a different C library, or without one of these functions. */
export function cLibrary<Functions extends Record<string, FFIFunction>>(functions: Functions) {
  const names = process.platform === "darwin" ? ["libSystem.B.dylib"] : ["libc.so.6", "libc.so"];
  for (const name of names) {
    try {
      return dlopen(name, functions).symbols;
    } catch {
      // Try the next name.
    }
  }
  return undefined;
}
