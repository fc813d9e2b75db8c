/** Query results as files, streamed by the server. */

import { send } from "../lib/api.ts";
import { download, type FileForm, withoutFormulas } from "../lib/csv.ts";
import { inProject } from "../lib/session.ts";
import { toastError } from "./toast.tsx";

const types: Record<FileForm, string> = { csv: "text/csv", parquet: "application/vnd.apache.parquet" };

/** Downloads all rows of a statement as a file; shows an error on failure. */
export async function downloadRows(statement: string, form: FileForm, name: string): Promise<void> {
  try {
    const answer = await send(inProject("query/"), {
      method: "POST",
      accept: types[form],
      isRead: true,
      body: { query: statement },
    });
    download(`${name}.${form}`, await (form === "csv" ? spreadsheet(answer) : answer).blob());
  } catch (error) {
    toastError(error);
  }
}

function spreadsheet({ body }: Response): Response {
  const text = body!.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>);
  const bytes = text.pipeThrough(withoutFormulas()).pipeThrough(new TextEncoderStream());
  return new Response(bytes);
}
