/** What `scanner.ts` calls. */

export { read } from "./events";
export { write } from "./lines";
