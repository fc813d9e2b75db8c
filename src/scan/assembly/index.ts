/** What is called from TypeScript. */

export { read } from "./events";
export { write } from "./lines";
export { beginMembers, copyRecords, knowMember } from "./records";
export { beginNames, knownNames, members, nameBytes, namesEnd, shapeHash } from "./members";
export { beginValues, knownValues, valueBytes } from "./values";
