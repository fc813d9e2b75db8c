/** Code that evaluates the flag, and the flag as a file. */

import { CodeBlock } from "../../components/primitives.tsx";
import { SdkSnippets } from "../../components/sdk-snippets.tsx";
import { request } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import type { Condition, Flag } from "../../model/flags.ts";
import { toYaml } from "../../model/yaml.ts";

const w = messages.flag.code;

export function Code({ flag }: { flag: Flag }) {
  const flagIds = getConditions(flag).flatMap(({ type, key }) => (type === "flag" ? [Number(key)] : []));
  const keys = useResource<{ keys: Record<string, string> }>(
    flagIds.length === 0 ? null : `keys ${flagIds.join()}`,
    (signal) =>
      request(inProject("feature_flags/bulk_keys/"), { method: "POST", body: { ids: flagIds }, signal }),
  );
  return (
    <div class="stack">
      <section class="card stack">
        <h2>{w.ask}</h2>
        <SdkSnippets flagKey={flag.key} />
      </section>
      <section class="card stack">
        <h2>{w.yaml}</h2>
        <p class="help">{w.yamlHelp}</p>
        <CodeBlock code={flagDocument(flag, keys.data?.keys ?? {})} label={w.yaml} />
      </section>
    </div>
  );
}

function getConditions(flag: Flag): Condition[] {
  return (flag.filters.groups ?? []).flatMap(({ properties }) => properties ?? []);
}

/** Document for `flagkeep flags import`: names in place of ids. */
function flagDocument(flag: Flag, keys: Record<string, string>): string {
  const named = (condition: Condition) => {
    if (condition.type === "cohort") {
      const { cohort_name: name, key: _, value, ...others } = condition;
      return { ...others, cohort: name ?? value };
    }
    if (condition.type === "flag") {
      const { key, ...others } = condition;
      return { ...others, flag: keys[key] ?? key };
    }
    return condition;
  };
  const groups = (flag.filters.groups ?? []).map((set) => ({
    ...set,
    properties: (set.properties ?? []).map(named),
  }));
  const item = {
    key: flag.key,
    name: flag.name || undefined,
    active: flag.active,
    tags: flag.tags.length > 0 ? flag.tags : undefined,
    filters: { ...flag.filters, groups },
  };
  return toYaml({ flagkeep_flags: 1, flags: [item] });
}
