/** Functions that TypeScript calls. */

export { read } from "./events";
export { write } from "./lines";
export { startMembers, copyRecords, knowMember } from "./records";
export { startNames, knownNames, members, nameBytes, namesEnd, shapeHash } from "./members";
export { startValues, knownValues, valueBytes } from "./values";
