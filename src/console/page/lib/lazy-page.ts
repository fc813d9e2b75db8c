/** Lazily loaded parts of the page. */

import { type ComponentType, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { rootPath } from "./router.ts";

/** `updated`: the server has another version than this page. `away`: the file could not be loaded. */
export type LoadFailure = "updated" | "away";

/** Shown until a part is loaded, and on failure. */
export type Placeholder = ComponentType<{ failure?: LoadFailure; onRetry: () => void }>;

export type LazyPage<Props> = ComponentType<Props> & { preload: () => Promise<unknown> };

/** A component loaded on first render. The placeholder replaces the former page immediately. */
export function lazyPage<Props = Record<never, never>>(
  load: () => Promise<ComponentType<Props>>,
  placeholder: Placeholder,
): LazyPage<Props> {
  let loaded: ComponentType<Props> | undefined;
  let loading: Promise<unknown> | undefined;
  const preload = () => {
    loading ??= load()
      .then((part) => {
        loaded = part;
      })
      .finally(() => {
        loading = undefined;
      });
    return loading;
  };
  function Later(props: Props) {
    const [failure, setFailure] = useState<LoadFailure>();
    const [round, setRound] = useState(0);
    const [, redraw] = useState(false);
    useEffect(() => {
      // Also if it was loaded between rendering and this effect.
      if (loaded !== undefined) return redraw(true);
      let isWanted = true;
      preload().then(
        () => isWanted && redraw(true),
        async (error) => {
          const found = await getReason(error);
          // Some browsers cache a failed module and load it only in a new document.
          if (round > 0 && found === "away" && (await isAnswering(rootPath))) return location.reload();
          if (isWanted) setFailure(found);
        },
      );
      return () => {
        isWanted = false;
      };
    }, [round]);
    if (loaded !== undefined) return h(loaded as ComponentType<object>, props as object);
    const onRetry = () => {
      setFailure(undefined);
      setRound(round + 1);
    };
    return h(placeholder, { ...(failure ? { failure } : {}), onRetry });
  }
  return Object.assign(Later, { preload });
}

const isAnswering = (path: string) =>
  fetch(path).then(
    ({ ok }) => ok,
    () => false,
  );

/** Why a module failed to load; Chromium and Firefox include its URL in the message. */
async function getReason(error: unknown): Promise<LoadFailure> {
  const address = /https?:\/\/\S+/.exec(error instanceof Error ? error.message : "")?.[0];
  try {
    if (address?.startsWith(location.origin) && (await fetch(address)).status === 404) return "updated";
    const index = await (await fetch(rootPath)).text();
    const script = document.querySelector<HTMLScriptElement>("script[type=module][src]")?.getAttribute("src");
    return script && index.includes("<script") && !index.includes(script) ? "updated" : "away";
  } catch {
    return "away";
  }
}
