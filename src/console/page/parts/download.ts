/** Rows of statements as files, computed by the server and sent while they are. */

import { send, wordsOf } from "../lib/api.ts";
import { download, type FileForm, withoutFormulas } from "../lib/csv.ts";
import { inProject } from "../lib/session.ts";
import { complain } from "./toast.tsx";

const types: Record<FileForm, string> = { csv: "text/csv", parquet: "application/vnd.apache.parquet" };

/** Hands all rows of a statement to the browser as a file; says so when that does not work. */
export async function downloadRows(statement: string, form: FileForm, name: string): Promise<void> {
  try {
    const answer = await send(inProject("query/"), {
      method: "POST",
      accept: types[form],
      body: { query: statement },
    });
    download(`${name}.${form}`, await (form === "csv" ? spreadsheet(answer) : answer).blob());
  } catch (error) {
    complain(wordsOf(error));
  }
}

function spreadsheet({ body }: Response): Response {
  const text = body!.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>);
  const bytes = text.pipeThrough(withoutFormulas()).pipeThrough(new TextEncoderStream());
  return new Response(bytes);
}
