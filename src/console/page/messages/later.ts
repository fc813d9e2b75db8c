/** Messages of pages that are rarely opened: they are loaded with them, not with the first page. */

import { earlyAccess } from "./en/early-access.ts";
import { surveys } from "./en/surveys.ts";

export const laterWords = { earlyAccess, surveys };
