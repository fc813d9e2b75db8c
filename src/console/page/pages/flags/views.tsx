/** Saved views of the flag list: of the team in the project's settings, the user's own in this browser. */

import { useState } from "preact/hooks";
import { Field, Segments } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { Badge, Button } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { request } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { useResource } from "../../lib/resource.ts";
import { to } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { readPreference, savePreference } from "../../lib/storage.ts";
import { messages } from "../../messages/index.ts";

const w = messages.flags.views;

interface View {
  name: string;
  query: string;
}

type Owner = keyof typeof w.owners;

const ownKey = () => `flag-views:${project.value?.id}`;

function readOwn(): View[] {
  try {
    const stored: unknown = JSON.parse(readPreference(ownKey()) ?? "[]");
    return Array.isArray(stored) ? stored.filter((view): view is View => typeof view?.name === "string") : [];
  } catch {
    return [];
  }
}

const readTeams = (signal?: AbortSignal) =>
  request<{ flag_views: View[] }>(inProject(""), signal ? { signal } : {}).then(
    ({ flag_views }) => flag_views,
  );

/** @param query the list's present filters, to save. */
export function Views({ query, onClose }: { query: Record<string, string>; onClose: () => void }) {
  const teams = useResource<View[]>(`flag views ${project.value?.id}`, readTeams);
  const [own, setOwn] = useState(readOwn);
  const { new: _, clean: __, ...filters } = query;
  const text = new URLSearchParams(filters).toString();

  const saveOwn = (views: View[]) => {
    savePreference(ownKey(), JSON.stringify(views));
    setOwn(views);
  };
  /** Changes what is stored now: another member may have saved a view meanwhile. */
  const saveTeams = async (change: (views: readonly View[]) => View[]) => {
    const views = change(await readTeams());
    await request(inProject(""), { method: "PATCH", body: { flag_views: views } });
    teams.replace(views);
  };
  const form = useForm({ name: "", owner: "own" as Owner }, async ({ name, owner }) => {
    const view = { name: name.trim(), query: text };
    if (owner === "team") await saveTeams((views) => [...views, view]);
    else if (own.some((other) => other.name === view.name)) throw new Error(w.nameInUse);
    else saveOwn([...own, view]);
    form.set({ name: "" });
  });
  return (
    <FormDialog
      title={w.title}
      form={form}
      action={w.save}
      isDisabled={text === "" || form.values.name.trim() === ""}
      onClose={onClose}
    >
      <Content resource={teams} rows={2}>
        {(shared) => (
          <ul class="plain-list" aria-label={w.title}>
            {[
              ...shared.map((view) => ({ ...view, owner: "team" as Owner })),
              ...own.map((view) => ({ ...view, owner: "own" as Owner })),
            ].map((view) => (
              <li key={`${view.owner} ${view.name}`} class="row apart">
                <span>
                  <a
                    href={to("flags", Object.fromEntries(new URLSearchParams(view.query)))}
                    onClick={onClose}
                  >
                    {view.name}
                  </a>{" "}
                  <Badge>{w.owners[view.owner]}</Badge>
                </span>
                <Button
                  kind="quiet"
                  icon="trash"
                  label={w.remove(view.name)}
                  onClick={() => {
                    if (view.owner === "own") saveOwn(own.filter((other) => other.name !== view.name));
                    else
                      void form.run(() =>
                        saveTeams((views) => views.filter((other) => other.name !== view.name)),
                      );
                  }}
                />
              </li>
            ))}
          </ul>
        )}
      </Content>
      {text === "" ? (
        <p class="help">{w.nothing}</p>
      ) : (
        <>
          <Field label={w.name} {...form.input("name")} error={form.error} isRequired />
          <Segments
            label={w.for}
            choices={Object.entries(w.owners) as [Owner, string][]}
            {...form.choice("owner")}
          />
        </>
      )}
    </FormDialog>
  );
}
