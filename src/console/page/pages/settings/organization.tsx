/** Organization: name and edit access to flags. */

import { useState } from "preact/hooks";
import { Field, Select } from "../../components/fields.tsx";
import { Form } from "../../components/form.tsx";
import { request } from "../../lib/api.ts";
import { isAdmin, loadSession, me } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";

const w = messages.settings;

export function OrganizationSettings() {
  const organization = me.value?.organization;
  const [name, setName] = useState(organization?.name ?? "");
  const [access, setAccess] = useState(String(organization?.feature_flags_access_level ?? 37));
  const disabledReason = !isAdmin.value && messages.frame.onlyAdmins;
  return (
    <section class="card">
      <h2>{w.tabs.organization}</h2>
      <Form
        disabledReason={disabledReason}
        onSend={async () => {
          const body = { name, feature_flags_access_level: Number(access) };
          await request("/api/organizations/@current/", { method: "PATCH", body });
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
              isDisabled={!!disabledReason}
            />
            <Select
              label={w.flagsAccess}
              value={access}
              disabledReason={disabledReason}
              choices={Object.entries(w.accessLevels)}
              onChange={setAccess}
            />
          </div>
        )}
      </Form>
    </section>
  );
}
