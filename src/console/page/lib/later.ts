/** Parts of the page whose files are got when somebody goes there. */

import { lazy } from "preact-iso";
import { rootPath } from "./address.ts";

const againMs = 2_000;

/** Like `lazy`; a file that cannot be got is one of a release before, or the server is away: then the page is got anew. */
export const later: typeof lazy = (load) =>
  lazy(() =>
    load().catch(async () => {
      do await new Promise((resolve) => setTimeout(resolve, againMs));
      while (!(await fetch(rootPath).catch(() => undefined))?.ok);
      location.reload();
      return await new Promise<never>(() => {});
    }),
  );
