"""A head for every client in ten lines: 20 clients with very different digits, one round."""

import gramfold as gf
from gramfold.federation import digits

federation = gf.Federation.from_dataset(digits(), clients=20, partition="dirichlet:0.1", random_state=0)
for method in (gf.Local(), gf.AFL(), gf.PACE()):
    result = gf.run(method, federation)
    print(f"{method.name:>6}: {result.mean_accuracy:.1%} mean accuracy, {result.uplink_bytes / 20 / 1e3:.0f} kB from each client")

head = result.heads["7"]
head.save("client-7.safetensors")
images, labels = federation.clients[7].test()
print(gf.load_head("client-7.safetensors").predict_proba(images[:3]).round(2), labels[:3])
