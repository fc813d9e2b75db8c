/** CSV for spreadsheets, streamed. */

import { once } from "../lib/once.ts";
import { whileAllowed } from "./while-allowed.ts";

/** Loaded with the first file: most servers never write one. */
const papa = once(() => require("papaparse") as typeof import("papaparse"));

type Cell = string | number | boolean | null;

/** A row with its line break. Spreadsheets run cells that begin like a formula: those get a `'` before them. */
function csvLine(row: readonly Cell[]): string {
  return `${papa().unparse([row as Cell[]], { newline: "\n", escapeFormulae: true })}\n`;
}

/** A file of rows that are read while it is sent; it breaks off when the caller loses access. */
export function csvResponse(
  fileName: string,
  rows: AsyncIterable<readonly Cell[]>,
  isStillAllowed: () => boolean,
): Response {
  const encoder = new TextEncoder();
  const iterator = rows[Symbol.asyncIterator]();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await iterator.next();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(csvLine(value)));
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(whileAllowed(body, isStillAllowed), {
    headers: {
      "Content-Type": "text/csv; charset=utf-8",
      "Content-Disposition": `attachment; filename="${fileName}"`,
      Vary: "Accept",
    },
  });
}
