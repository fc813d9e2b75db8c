/** Functions of the system's C library. */

import { dlopen, type FFIFunction } from "bun:ffi";

/** Undefined where there is another library, or where these functions are not in it. */
export function cLibrary<Functions extends Record<string, FFIFunction>>(functions: Functions) {
  const names = process.platform === "darwin" ? ["libSystem.B.dylib"] : ["libc.so.6", "libc.so"];
  for (const name of names) {
    try {
      return dlopen(name, functions).symbols;
    } catch {
      // The next name, if there is one.
    }
  }
  return undefined;
}
