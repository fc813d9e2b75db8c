/** Results as files: the type by `Accept`, and CSV for spreadsheets, streamed. */

import { once } from "../lib/concurrency.ts";
import { AppError } from "../lib/errors.ts";

/** Files as which results are sent, by the header `Accept`. */
export const fileTypes = { csv: "text/csv", parquet: "application/vnd.apache.parquet" } as const;

/** The requested file type with the highest preference; undefined for JSON. */
export function getFileFormat(request: Request): keyof typeof fileTypes | undefined {
  for (const range of (request.headers.get("accept") ?? "").split(",")) {
    const type = range.split(";", 1)[0]!.trim().toLowerCase();
    if (type === fileTypes.csv) return "csv";
    if (type === fileTypes.parquet) return "parquet";
    if (["*/*", "application/*", "application/json"].includes(type)) return undefined;
  }
  return undefined;
}

/** The caller lost access while the response was sent. Contract: management-api 2.7. */
class AccessEndedError extends AppError {
  readonly code = "access_ended";
}

/**
 * The body of a response that takes long to send. It ends with an error when its caller loses access: the connection is
 * aborted, so that the client sees that the body is incomplete.
 *
 * @param isStillAllowed is called for each part.
 */
export function whileAllowed(
  body: ReadableStream<Uint8Array>,
  isStillAllowed: () => boolean,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        if (!isStillAllowed()) {
          const error = new AccessEndedError("The key or session of the request has ended.");
          await reader.cancel(error);
          throw error;
        }
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel(reason) {
        await reader.cancel(reason);
      },
    },
    // No part is taken before it is sent.
    { highWaterMark: 0 },
  );
}

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
