/** The words in use. */

export { words } from "./en.ts";
