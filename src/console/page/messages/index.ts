/** The messages in use. */

export { messages } from "./en.ts";
