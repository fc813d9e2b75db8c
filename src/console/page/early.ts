/**
 * Runs before anything is painted, so that a chosen theme never flashes the other one; and asks who is there while the page's
 * own script is on its way.
 */

import { askEarly } from "./lib/early-answers.ts";
import { applyTheme, storedTheme } from "./lib/theme.ts";

applyTheme(storedTheme());
askEarly();
