import { relative } from "node:path";
import { shellWord } from "../src/lib/terminal-text.ts";

/** How to call this executable from the current folder: `flagkeep` if the PATH finds it, else its relative path. */
export function commandName(): string {
  if (Bun.which("flagkeep") === process.execPath) return "flagkeep";
  const path = relative(process.cwd(), process.execPath);
  return shellWord(path.startsWith("..") ? process.execPath : path.includes("/") ? path : `./${path}`);
}
