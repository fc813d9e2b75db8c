/** The input of a command from a file (`--file`). */

import { readFileSync } from "node:fs";
import { InvalidDocumentError, parseFile } from "../../src/flags/import-export/read-document.ts";
import { isJsonObject } from "../../src/lib/json/value.ts";
import type { Members, Operation } from "../../src/operations/operation.ts";

/** Members of the operation's input; others are ignored, as in the API. @throws {InvalidDocumentError} */
export function readInputFile(operation: Operation, path: string): Members {
  const content = parseFile(readFileSync(path, "utf8"));
  if (!isJsonObject(content)) throw new InvalidDocumentError(`${path} must contain an object.`);
  const known = Object.keys(operation.input.properties);
  return Object.fromEntries(Object.entries(content).filter(([name]) => known.includes(name)));
}
