/** An instance of the scanner's WebAssembly module, and its memory. */

import { wasmModule } from "./wasm-module.ts";

/** Functions imported by the module; arguments are addresses and lengths in its memory. */
export interface WasmImports {
  /** Epoch microseconds of a timestamp; NaN if invalid. */
  readonly timeOf: (at: number, length: number) => number;
  /** Writes a new UUID at an address. */
  readonly generateUuid: (at: number) => void;
}

/** For read-only use. */
const noImports: WasmImports = { timeOf: () => Number.NaN, generateUuid: () => {} };
/** Address of the input; the module uses the memory below. */
export const inputAddress = 80 * 1024;
/** Zero bytes after the input: they terminate every scan. */
export const tailBytes = 64;
const pageBytes = 64 * 1024;

/** An instance with its own memory, which grows with the longest input. */
export class WasmInstance<Exports> {
  readonly program: Exports & { readonly memory: WebAssembly.Memory };
  bytes!: Uint8Array<ArrayBuffer>;
  buffer!: Buffer;
  /** Memory as 32-bit words. */
  numbers!: Uint32Array;

  constructor(imports: (instance: WasmInstance<Exports>) => WasmImports = () => noImports) {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(wasmModule()), {
      host: { ...imports(this) },
    });
    this.program = exports as unknown as typeof this.program;
    this.updateViews();
  }

  /**
   * Copies the input to `textAt` and reserves an output area after its tail. @returns the address of the output area
   */
  put(text: Uint8Array, capacityBytes: number): number {
    const end = inputAddress + text.length;
    const output = aligned(end + tailBytes);
    this.reserve(output + capacityBytes);
    this.bytes.set(text, inputAddress);
    this.bytes.fill(0, end, end + tailBytes);
    return output;
  }

  /** Grows the memory to at least this size. */
  reserve(bytes: number): void {
    const missing = bytes - this.bytes.length;
    if (missing <= 0) return;
    this.program.memory.grow(Math.ceil(missing / pageBytes));
    this.updateViews();
  }

  private updateViews(): void {
    const { buffer } = this.program.memory;
    this.bytes = new Uint8Array(buffer);
    this.buffer = Buffer.from(buffer);
    this.numbers = new Uint32Array(buffer);
  }
}

/** Rounds an address up to a multiple of 16 bytes. */
export function aligned(at: number): number {
  return Math.ceil(at / 16) * 16;
}
