/** Predicts which changes need approval. The server decides: 403 `approval_required` remains possible. */

import { criticalTag } from "../../../flags/rules/shared-rules.ts";
import { request } from "../lib/api.ts";
import { useResource } from "../lib/resource.ts";
import { inProject, project } from "../lib/session.ts";
import type { Flag } from "./flags.ts";

interface Approvals {
  /**
   * Whether changes of a flag need approval, as far as known. Changes of a flag that others depend on may need it too.
   */
  needed: (flag: Pick<Flag, "tags">) => boolean;
  /** The same, waiting until it is known: for clicks before then. */
  whenKnown: (flag: Pick<Flag, "tags">) => Promise<boolean>;
  /** Whether changes of some flags need approval. */
  areUsed: () => Promise<boolean>;
}

interface Setting {
  approvals?: string;
}

const readSetting = (signal?: AbortSignal) => request<Setting>(inProject(""), signal ? { signal } : {});

export function useApprovals(): Approvals {
  const { data } = useResource<Setting>(`approvals ${project.value?.id}`, readSetting);
  const isNeeded = (setting: Setting | undefined, { tags }: Pick<Flag, "tags">) =>
    setting?.approvals === "all" || (setting?.approvals === "critical" && tags.includes(criticalTag));
  const known = async () => data ?? (await readSetting().catch(() => undefined));
  return {
    needed: (flag) => isNeeded(data, flag),
    whenKnown: async (flag) => isNeeded(await known(), flag),
    areUsed: async () => ((await known())?.approvals ?? "off") !== "off",
  };
}
