/** The thread of `columnar-converter.ts`. */

import { lowerThreadPriority } from "../lib/operating-system.ts";
import { type PackedFile, packColumnar } from "./columnar-converter.ts";

declare const self: Worker;

const reply = (message: PackedFile, transfer: ArrayBufferLike[] = []) =>
  postMessage(message, transfer as ArrayBuffer[]);

lowerThreadPriority();
self.onmessage = async ({ data: path }: MessageEvent<string>) => {
  try {
    const packed = await packColumnar(path);
    // A pooled buffer cannot be transferred, and is copied.
    const isWhole = packed?.byteLength === packed?.buffer.byteLength;
    reply({ packed }, packed !== undefined && isWhole ? [packed.buffer] : []);
  } catch (error) {
    reply({ error: String(error) });
  }
  // Before the next file, which needs as much memory again.
  Bun.gc(true);
};
