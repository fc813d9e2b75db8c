/** Code that evaluates a flag, per SDK. */

import { serverAddress } from "../lib/api.ts";
import { useAddress } from "../lib/router.ts";
import { project } from "../lib/session.ts";
import { messages } from "../messages/index.ts";
import { snippets } from "../model/snippets.ts";
import { Segments } from "./fields.tsx";
import { CodeBlock } from "./primitives.tsx";

const w = messages.flag.code;

export function SdkSnippets({
  flagKey,
  hasVariants = false,
}: {
  flagKey: string;
  /** Reads the variant instead of on or off. */
  hasVariants?: boolean;
}) {
  const { query, set } = useAddress();
  const all = snippets(serverAddress(), project.value?.api_token ?? "phc_…", flagKey, hasVariants);
  const name = query.sdk !== undefined && query.sdk in all ? query.sdk : "javascript";
  const chosen = all[name]!;
  return (
    <>
      <Segments
        label={w.sdk}
        value={name}
        choices={Object.entries(all).map(([sdk, { name: text }]) => [sdk, text] as const)}
        onChange={(sdk) => set({ sdk })}
      />
      {chosen.install && <CodeBlock code={chosen.install} label={w.sdk} />}
      <CodeBlock code={chosen.flag} label={w.ask} />
    </>
  );
}
