/** Imports and their progress. Uploads, which are no operations, are routes of `src/import/api`. */

import type { Static } from "@sinclair/typebox";
import { object, uuid } from "../http/schemas.ts";
import { exampleImport as example, ImportBody, ImportsBody, importBody } from "../import/api/imports.ts";
import type { ImportUploads } from "../import/uploads.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { operation, type ProjectContext } from "./operation.ts";

/** The server's imports; absent in a data directory. */
type Context = ProjectContext<{ uploads?: ImportUploads }>;
type ImportRecord = Static<typeof ImportBody>;

const tag = "Imports";

/** @throws {InvalidFieldError} the operation was called in a data directory. */
function getUploads({ stores: { uploads } }: Context): ImportUploads {
  if (uploads !== undefined) return uploads;
  throw new InvalidFieldError(null, "unavailable", "Imports are shown by a running server. Use --url.");
}

const getLine = ({ id, name, state, progress, error }: ImportRecord) =>
  `${id}  ${state}  ${name}: ${progress.records} records, ${progress.rejected} rejected${error === null ? "" : `: ${error}`}`;

const listAllImports = operation({
  id: "imports.list",
  on: "project",
  scope: "event:read",
  tag,
  summary: "List imports",
  description: "Newest first: uploaded files, and `flagkeep import` runs since the last start.",
  http: { method: "GET", path: "/imports", answer: "The imports." },
  cli: {
    name: "imports list",
    description: "List the imports of a server, newest first.",
    examples: ["imports list --url http://127.0.0.1:8000"],
    done: ({ results }: { results: ImportRecord[] }) => results.map(getLine).join("\n") || "No imports.",
  },
  input: object({}),
  output: ImportsBody,
  example: { results: [example] },
  run: (context: Context) => ({ results: getUploads(context).list(context.project.id).map(importBody) }),
});

const getOneImport = operation({
  id: "imports.get",
  on: "project",
  scope: "event:read",
  tag,
  summary: "Get import progress",
  http: { method: "GET", path: "/imports/:import_id", answer: "The import." },
  cli: {
    name: "imports get",
    examples: ["imports get 0193d1a2-7b1c-7c3e-9f60-6f7a8b9c0d1e --url http://127.0.0.1:8000"],
    arguments: [{ name: "id", description: "id shown by `flagkeep imports list`", member: "import_id" }],
    done: getLine,
  },
  input: object({ import_id: uuid() }),
  output: ImportBody,
  example,
  run: (context: Context, { import_id: id }) => importBody(getUploads(context).find(context.project.id, id)),
});

/** In the order of the documentation. */
export const importOperations = [listAllImports, getOneImport];
