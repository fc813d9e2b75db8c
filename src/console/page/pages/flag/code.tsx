/** How code asks for the flag, and the flag as a file. */

import { useAddress } from "../../lib/address.ts";
import { ask, serverAddress } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject, project } from "../../lib/session.ts";
import type { Condition, Flag } from "../../model/flags.ts";
import { snippets } from "../../model/snippets.ts";
import { yamlText } from "../../model/yaml.ts";
import { CodeBlock } from "../../parts/basics.tsx";
import { Segments } from "../../parts/fields.tsx";
import { words } from "../../words/index.ts";

const w = words.flag.code;

export function Code({ flag }: { flag: Flag }) {
  const { query, set } = useAddress();
  const all = snippets(serverAddress(), project.value?.api_token ?? "phc_…", flag.key);
  const name = query.sdk !== undefined && query.sdk in all ? query.sdk : "javascript";
  const chosen = all[name]!;
  const flagIds = conditionsOf(flag).flatMap(({ type, key }) => (type === "flag" ? [Number(key)] : []));
  const keys = useResource<{ keys: Record<string, string> }>(
    flagIds.length === 0 ? null : `keys ${flagIds.join()}`,
    (signal) =>
      ask(inProject("feature_flags/bulk_keys/"), { method: "POST", body: { ids: flagIds }, signal }),
  );
  return (
    <div class="stack">
      <section class="card stack">
        <h2>{w.ask}</h2>
        <Segments
          label={w.sdk}
          value={name}
          choices={Object.entries(all).map(([sdk, { name: text }]) => [sdk, text] as const)}
          onChange={(sdk) => set({ sdk })}
        />
        {chosen.install && <CodeBlock code={chosen.install} label={w.sdk} />}
        <CodeBlock code={chosen.flag} label={w.ask} />
      </section>
      <section class="card stack">
        <h2>{w.yaml}</h2>
        <p class="help">{w.yamlHelp}</p>
        <CodeBlock code={flagDocument(flag, keys.data?.keys ?? {})} label={w.yaml} />
      </section>
    </div>
  );
}

function conditionsOf(flag: Flag): Condition[] {
  return (flag.filters.groups ?? []).flatMap(({ properties }) => properties ?? []);
}

/** The document that `flagkeep flags import` reads: names in place of ids. */
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
  return yamlText({ flagkeep_flags: 1, flags: [item] });
}
