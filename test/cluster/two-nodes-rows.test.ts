/** Two nodes on one PostgreSQL, which alone has the persons, are one Flagkeep. */

import { twoNodes } from "./two-nodes-suite.ts";

twoNodes("rows");
