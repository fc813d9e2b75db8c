/** The license of Flagkeep, and those of what is inside the executables, as one text. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import lock from "../package-lock.json";

interface Locked {
  version?: string;
  license?: string;
  dev?: boolean;
}

const runtimeNote =
  "The executables contain Bun, which is under the MIT license, and through it JavaScriptCore (LGPL-2.1) and other\n" +
  "libraries: https://bun.com/docs/project/licensing names them all and tells how to link it again.\n";

/** Declarations for the compiler, and the compiler, come along with some packages; nothing of them is in the executables. */
const forCompiler = /\/(@types|@typescript|bun-types|typescript|undici-types)(\/|$)/;

/** @param root the checkout, with the packages installed. */
export function licenseText(root: string, bunVersion: string): string {
  const parts = Object.entries(lock.packages as Record<string, Locked>)
    .filter(([path, { dev }]) => path !== "" && dev !== true && !forCompiler.test(path))
    .filter(([path]) => existsSync(join(root, path)))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, { version = "", license = "" }]) => {
      const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
      return `${heading(`${name} ${version} (${license})`)}${fileText(join(root, path))}`;
    });
  return [
    `${heading("Flagkeep (MIT)")}${fileText(root)}`,
    "Flagkeep contains the work of others, under these licenses.\n",
    `${heading(`Bun ${bunVersion} (MIT)`)}${runtimeNote}`,
    ...parts,
  ].join("\n");
}

function heading(text: string): string {
  return `${text}\n${"-".repeat(text.length)}\n\n`;
}

function fileText(folder: string): string {
  const name = readdirSync(folder).find((one) => /^(licen[cs]e|copying)(\.(md|txt))?$/i.test(one));
  const text = name === undefined ? "" : readFileSync(join(folder, name), "utf8").trim();
  return text === "" ? "The package brings no text of its license.\n" : `${text}\n`;
}
