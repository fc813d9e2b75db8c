/** The messages in use. */

export { words } from "./en.ts";
