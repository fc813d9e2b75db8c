/** Two nodes on one PostgreSQL, each with a replica of all persons, are one Flagkeep. */

import { twoNodes } from "./two-nodes-suite.ts";

twoNodes("replica");
