/** The organisation: its name, and who may edit flags. */

import { useState } from "preact/hooks";
import { ask } from "../../lib/api.ts";
import { isAdmin, loadSession, me } from "../../lib/session.ts";
import { Field, Select } from "../../parts/fields.tsx";
import { Form } from "../../parts/form.tsx";
import { words } from "../../words/index.ts";

const w = words.settings;

export function OrganizationSettings() {
  const organization = me.value?.organization;
  const [name, setName] = useState(organization?.name ?? "");
  const [access, setAccess] = useState(String(organization?.feature_flags_access_level ?? 37));
  const refusal = !isAdmin.value && words.frame.onlyAdmins;
  return (
    <section class="card">
      <h2>{w.tabs.organization}</h2>
      <Form
        refusal={refusal}
        onSend={async () => {
          const body = { name, feature_flags_access_level: Number(access) };
          await ask("/api/organizations/@current/", { method: "PATCH", body });
          await loadSession();
        }}
      >
        {(errorOf) => (
          <div class="columns">
            <Field
              label={w.name}
              value={name}
              onInput={setName}
              error={errorOf("name")}
              isDisabled={!!refusal}
            />
            <Select
              label={w.flagsAccess}
              value={access}
              refusal={refusal}
              choices={Object.entries(w.accessLevels)}
              onChange={setAccess}
            />
          </div>
        )}
      </Form>
    </section>
  );
}
