import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.openfeature.contrib.providers.ofrep.OfrepProvider;
import dev.openfeature.contrib.providers.ofrep.OfrepProviderOptions;
import dev.openfeature.sdk.Client;
import dev.openfeature.sdk.FlagEvaluationDetails;
import dev.openfeature.sdk.MutableContext;
import dev.openfeature.sdk.OpenFeatureAPI;
import java.util.LinkedHashMap;
import java.util.Map;

/** Uses the official OFREP provider against a running server and prints what it received as one JSON object. */
public class UseOpenFeature {
  public static void main(String[] arguments) throws Exception {
    OpenFeatureAPI api = OpenFeatureAPI.getInstance();
    api.setProviderAndWait(
        OfrepProvider.constructProvider(
            OfrepProviderOptions.builder()
                .baseUrl(arguments[0])
                .headers(ImmutableMap.of("Authorization", ImmutableList.of("Bearer " + arguments[1])))
                .build()));
    Client client = api.getClient();
    MutableContext ann = new MutableContext("ann");
    Map<String, Object> received = new LinkedHashMap<>();
    for (String key : new String[] {"always", "never", "switched-off", "for-servers", "for-browsers", "missing"}) {
      received.put(key, details(client.getBooleanDetails(key, true, ann)));
    }
    received.put("pro", details(client.getBooleanDetails("pro-plan", false, new MutableContext("ann").add("plan", "pro"))));
    received.put("free", details(client.getBooleanDetails("pro-plan", true, new MutableContext("ann").add("plan", "free"))));
    received.put("wrong type", details(client.getStringDetails("always", "x", ann)));
    for (int i = 0; i < 20; i++) {
      received.put("variants u" + i, details(client.getStringDetails("variants", "default", new MutableContext("u" + i))));
    }
    System.out.println(new ObjectMapper().writeValueAsString(received));
    System.exit(0);
  }

  private static Map<String, Object> details(FlagEvaluationDetails<?> details) {
    Map<String, Object> shown = new LinkedHashMap<>();
    shown.put("value", details.getValue());
    shown.put("variant", details.getVariant());
    shown.put("reason", details.getReason());
    shown.put("error", details.getErrorCode() == null ? null : details.getErrorCode().name());
    shown.put("payload", details.getFlagMetadata().getString("payload"));
    return shown;
  }
}
