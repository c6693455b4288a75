BEGIN TRANSACTION;
CREATE TABLE acknowledgements (
	rack VARCHAR(128) NOT NULL, 
	component VARCHAR(256) NOT NULL, 
	rule VARCHAR(64) NOT NULL, 
	"by" VARCHAR(256) NOT NULL, 
	comment TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	until FLOAT, 
	PRIMARY KEY (rack, component, rule)
);
CREATE TABLE assignment (
	job VARCHAR(128) NOT NULL, 
	rank INTEGER NOT NULL, 
	accelerator VARCHAR(128) NOT NULL, 
	run VARCHAR(64) NOT NULL, 
	PRIMARY KEY (job, rank)
);
INSERT INTO "assignment" VALUES('pair',0,'g1-gpu0','rollback-0003');
INSERT INTO "assignment" VALUES('pair',1,'g2-gpu0','rollback-0003');
CREATE TABLE device_states (
	device VARCHAR(128) NOT NULL, 
	puc INTEGER NOT NULL, 
	state VARCHAR(8) NOT NULL, 
	PRIMARY KEY (device, puc)
);
INSERT INTO "device_states" VALUES('mesh',0,'x');
INSERT INTO "device_states" VALUES('mesh',1,'x');
INSERT INTO "device_states" VALUES('mesh',2,'x');
INSERT INTO "device_states" VALUES('mesh',3,'x');
INSERT INTO "device_states" VALUES('mesh',4,'=');
INSERT INTO "device_states" VALUES('mesh',5,'=');
INSERT INTO "device_states" VALUES('mesh',6,'=');
INSERT INTO "device_states" VALUES('mesh',7,'=');
INSERT INTO "device_states" VALUES('mesh',8,'=');
INSERT INTO "device_states" VALUES('mesh',9,'=');
INSERT INTO "device_states" VALUES('mesh',10,'=');
INSERT INTO "device_states" VALUES('mesh',11,'=');
INSERT INTO "device_states" VALUES('mesh',12,'=');
INSERT INTO "device_states" VALUES('mesh',13,'=');
INSERT INTO "device_states" VALUES('mesh',14,'=');
INSERT INTO "device_states" VALUES('mesh',15,'=');
INSERT INTO "device_states" VALUES('mesh',16,'=');
INSERT INTO "device_states" VALUES('mesh',17,'=');
INSERT INTO "device_states" VALUES('mesh',18,'=');
INSERT INTO "device_states" VALUES('mesh',19,'=');
INSERT INTO "device_states" VALUES('mesh',20,'=');
INSERT INTO "device_states" VALUES('mesh',21,'=');
INSERT INTO "device_states" VALUES('mesh',22,'=');
INSERT INTO "device_states" VALUES('mesh',23,'=');
INSERT INTO "device_states" VALUES('mesh',24,'=');
INSERT INTO "device_states" VALUES('mesh',25,'=');
INSERT INTO "device_states" VALUES('mesh',26,'=');
CREATE TABLE devices (
	device VARCHAR(128) NOT NULL, 
	certain INTEGER NOT NULL, 
	run VARCHAR(64) NOT NULL, 
	PRIMARY KEY (device)
);
INSERT INTO "devices" VALUES('mesh',1,'swap-0004');
CREATE TABLE health_memory (
	rack VARCHAR(128) NOT NULL, 
	at FLOAT NOT NULL, 
	document TEXT NOT NULL, 
	PRIMARY KEY (rack)
);
CREATE TABLE journal (
	seq INTEGER NOT NULL, 
	run VARCHAR(64) NOT NULL, 
	at FLOAT NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	step VARCHAR(32) NOT NULL, 
	data TEXT NOT NULL, 
	fence INTEGER NOT NULL, 
	version VARCHAR(32) NOT NULL, 
	previous VARCHAR(64) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	PRIMARY KEY (seq)
);
INSERT INTO "journal" VALUES(1,'fabric-0001',1.79531465002444982521e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "plan": "5e51deb9457f79d07319a5f3f63dad30f99ee0689edbd9ee5c724e704c90add1", "target": "sim", "title": "program 1 circuits of golden", "who": "ops@console from 10.0.0.7"}',1,'0.1.0','0000000000000000000000000000000000000000000000000000000000000000','1772c9d57dfb0f3486fee372df78f1d3e2c3324bdb8406ca77b104633e3b9568');
INSERT INTO "journal" VALUES(2,'fabric-0001',1795314650.03524,'intent','1','{"do": "check", "title": "find which of 0 circuits are sound"}',1,'0.1.0','1772c9d57dfb0f3486fee372df78f1d3e2c3324bdb8406ca77b104633e3b9568','b81a732a031c892801814f1f13afa3d46a720ce3ad4d2eda5e4549c4379b75f3');
INSERT INTO "journal" VALUES(3,'fabric-0001',1.7953146500385165215e+09,'outcome','1','{"done": true, "sound": {}}',1,'0.1.0','b81a732a031c892801814f1f13afa3d46a720ce3ad4d2eda5e4549c4379b75f3','7e86aba02562a37c8810a20f6260bdd0ad320b4a20a93b5d8614fdca28dbc936');
INSERT INTO "journal" VALUES(4,'fabric-0001',1.79531465004298400878e+09,'intent','2','{"do": "program", "title": "program 27 PUCs of mesh"}',1,'0.1.0','7e86aba02562a37c8810a20f6260bdd0ad320b4a20a93b5d8614fdca28dbc936','3727aac51b3074fe08f232430b6390c0571d11cb7f6302545b0c5cd878228caa');
INSERT INTO "journal" VALUES(5,'fabric-0001',1.79531465004954266548e+09,'outcome','2','{"answer": "ok 27 cells set", "cells": 27, "done": true, "revert_timer": "none"}',1,'0.1.0','3727aac51b3074fe08f232430b6390c0571d11cb7f6302545b0c5cd878228caa','d66fa0fac80b335a638cbdec1c56cbc9cf8c773ac0aff46739e5710eb778c6cc');
INSERT INTO "journal" VALUES(6,'fabric-0001',1.79531465005855393407e+09,'intent','3','{"do": "verify", "title": "verify 1 new circuits and 0 others on the same devices"}',1,'0.1.0','d66fa0fac80b335a638cbdec1c56cbc9cf8c773ac0aff46739e5710eb778c6cc','0ef62cd3fe00cb2ccf031493d2acd5d4cb1335eab42c0cc92b5d5c79b1a0d78b');
INSERT INTO "journal" VALUES(7,'fabric-0001',1.79531465012220549587e+09,'outcome','3','{"done": true, "kept": 0, "proofs": [{"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g2-gpu0-a", "seconds": 0.06, "transmitter": "g1-gpu0-a"}, {"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g1-gpu0-a", "seconds": 0.06, "transmitter": "g2-gpu0-a"}]}',1,'0.1.0','0ef62cd3fe00cb2ccf031493d2acd5d4cb1335eab42c0cc92b5d5c79b1a0d78b','675f97cdd279a723139d6a097903fa047fa63550708473d79265c24afb3d2b9b');
INSERT INTO "journal" VALUES(8,'fabric-0001',1.79531465012651157385e+09,'intent','4','{"do": "assign", "title": "write down where pair runs"}',1,'0.1.0','675f97cdd279a723139d6a097903fa047fa63550708473d79265c24afb3d2b9b','c503863d574cdb94bbafac67f3727f438a8fee9eb9fc6b1a8f3482f13130f440');
INSERT INTO "journal" VALUES(9,'fabric-0001',1.79531465012978100779e+09,'outcome','4','{"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "done": true}',1,'0.1.0','c503863d574cdb94bbafac67f3727f438a8fee9eb9fc6b1a8f3482f13130f440','3ac5212b3433f2f37aabaf2338437bf304cfee67d54547bf023248d27a1f226e');
INSERT INTO "journal" VALUES(10,'fabric-0001',1.79531465013633966445e+09,'end','','{"seconds": 0.1011, "state": "done"}',1,'0.1.0','3ac5212b3433f2f37aabaf2338437bf304cfee67d54547bf023248d27a1f226e','be5f4d8fe5112a249ebe78f832c76dfd73797262e191b1eef9afd6a761db8e25');
INSERT INTO "journal" VALUES(11,'swap-0002',1.79531465031953358646e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "plan": "8a185f2bf2c6b46936edfec1e6e755e090b46c88cd62d0d669992d2ef294d7d7", "target": "sim", "title": "pair: replace g2-gpu0 by g3-gpu0", "who": "ops@console from 10.0.0.7"}',2,'0.1.0','be5f4d8fe5112a249ebe78f832c76dfd73797262e191b1eef9afd6a761db8e25','f0a1ecfef90a4d125ae94b368eb1752284377df7c0736c57638e6fe618d57153');
INSERT INTO "journal" VALUES(12,'swap-0002',1.79531465033179330826e+09,'intent','1','{"do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuits are sound"}',2,'0.1.0','f0a1ecfef90a4d125ae94b368eb1752284377df7c0736c57638e6fe618d57153','aecab2b7ea10692b968680468ce8f64762a86f37fd1732a027ccce07bd9ffb56');
INSERT INTO "journal" VALUES(13,'swap-0002',1.79531465037613916402e+09,'outcome','1','{"done": true, "sound": {"g1-gpu0-a": "g2-gpu0-a", "g2-gpu0-a": "g1-gpu0-a"}}',2,'0.1.0','aecab2b7ea10692b968680468ce8f64762a86f37fd1732a027ccce07bd9ffb56','31f922d5ff9394a0ae410529ff15bc00e0c438cc2b1f45681400040596a2dd0f');
INSERT INTO "journal" VALUES(14,'swap-0002',1.79531465038301730153e+09,'intent','2','{"do": "transmit", "title": "darken the transmitter of g2-gpu0-a"}',2,'0.1.0','31f922d5ff9394a0ae410529ff15bc00e0c438cc2b1f45681400040596a2dd0f','3b135e3eaa09cfb6fee5054b3f5b47a4384a8a2e817a9a8520c989f197b5c141');
INSERT INTO "journal" VALUES(15,'swap-0002',1.79531465039448070528e+09,'outcome','2','{"done": true, "is": false, "was": true}',2,'0.1.0','3b135e3eaa09cfb6fee5054b3f5b47a4384a8a2e817a9a8520c989f197b5c141','dc8b4ee2d451e10c03a1b6d53df22989cec960ace75318bbe4bfe0565b2eaa3f');
INSERT INTO "journal" VALUES(16,'swap-0002',1.79531465040112757683e+09,'intent','3','{"do": "transmit", "title": "light the transmitter of g3-gpu0-a"}',2,'0.1.0','dc8b4ee2d451e10c03a1b6d53df22989cec960ace75318bbe4bfe0565b2eaa3f','619328d86bb05bc4eef72df930f910fa19bb47ef3c7b2f86f74348c61bfcbddf');
INSERT INTO "journal" VALUES(17,'swap-0002',1.79531465046409416204e+09,'outcome','3','{"done": true, "is": true, "was": true}',2,'0.1.0','619328d86bb05bc4eef72df930f910fa19bb47ef3c7b2f86f74348c61bfcbddf','d6d5f70454e19634339a8f9a0d3842c6d02839c748962d9f89f8c4de90d4c787');
INSERT INTO "journal" VALUES(18,'swap-0002',1.79531465046719145776e+09,'intent','4','{"do": "program", "title": "program 5 PUCs of mesh"}',2,'0.1.0','d6d5f70454e19634339a8f9a0d3842c6d02839c748962d9f89f8c4de90d4c787','90bc318c59883cd30591a3bc9c31aa34d5929620e5f9110396cd6473fd0503ed');
INSERT INTO "journal" VALUES(19,'swap-0002',1.79531465048035335542e+09,'outcome','4','{"answer": "ok 5 cells set", "cells": 5, "done": true, "revert_timer": "ours"}',2,'0.1.0','90bc318c59883cd30591a3bc9c31aa34d5929620e5f9110396cd6473fd0503ed','be90a31f471c25e541b377f3840fb10aa93815863e46fbbe83f68a1ebd51ec6e');
INSERT INTO "journal" VALUES(20,'swap-0002',1.79531465048263454437e+09,'intent','5','{"do": "verify", "title": "verify 1 new circuits and 0 others on the same devices"}',2,'0.1.0','be90a31f471c25e541b377f3840fb10aa93815863e46fbbe83f68a1ebd51ec6e','09049826dd8acd7c3d0879c357df3822f26ba00d1994eb17ec7212ee7afa84fa');
INSERT INTO "journal" VALUES(21,'swap-0002',1.7953146504931926727e+09,'outcome','5','{"done": true, "kept": 0, "proofs": [{"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g3-gpu0-a", "seconds": 0.006, "transmitter": "g1-gpu0-a"}, {"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g1-gpu0-a", "seconds": 0.006, "transmitter": "g3-gpu0-a"}]}',2,'0.1.0','09049826dd8acd7c3d0879c357df3822f26ba00d1994eb17ec7212ee7afa84fa','d80f496c0a563a2ff949c65b4071eb3f0cdc329ecf1782118fa328949219a5ff');
INSERT INTO "journal" VALUES(22,'swap-0002',1.79531465049858951566e+09,'intent','6','{"do": "assign", "title": "write down where pair runs"}',2,'0.1.0','d80f496c0a563a2ff949c65b4071eb3f0cdc329ecf1782118fa328949219a5ff','4af0f3bb6c7154ee454a2ad8b338c5deba7b5a47f0106095602e93eac8fdb628');
INSERT INTO "journal" VALUES(23,'swap-0002',1.79531465050654363627e+09,'outcome','6','{"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "done": true}',2,'0.1.0','4af0f3bb6c7154ee454a2ad8b338c5deba7b5a47f0106095602e93eac8fdb628','353099b484bc797bcb620f3359dcc056356b0545ddb581dda1101081236db8a1');
INSERT INTO "journal" VALUES(24,'swap-0002',1.79531465051412582401e+09,'end','','{"seconds": 0.1824, "state": "done"}',2,'0.1.0','353099b484bc797bcb620f3359dcc056356b0545ddb581dda1101081236db8a1','a633dfb6ffd42684c48108dbe2f74a6f7bafef2e4eea0dd6a9b4f3ddf3794437');
INSERT INTO "journal" VALUES(25,'rollback-0003',1.7953146505789983273e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "plan": "a1ac7a6f62afed71c0f467dab289a9e1c42eddef60eecfc3f75e2b1f2de1686c", "target": "sim", "title": "take back swap-0002 (pair: replace g2-gpu0 by g3-gpu0)", "who": "ops@console from 10.0.0.7"}',3,'0.1.0','a633dfb6ffd42684c48108dbe2f74a6f7bafef2e4eea0dd6a9b4f3ddf3794437','0787a2efe403fc1d238d17b29fcf40f567354def6f4f628459e63cb37abfc59f');
INSERT INTO "journal" VALUES(26,'rollback-0003',1.79531465058730387691e+09,'intent','1','{"do": "check", "title": "find which of 1 circuits are sound"}',3,'0.1.0','0787a2efe403fc1d238d17b29fcf40f567354def6f4f628459e63cb37abfc59f','975374943c46b652cb80f8c9126234a98dc004e96668e933782957fbddaad8ed');
INSERT INTO "journal" VALUES(27,'rollback-0003',1795314650.61056,'outcome','1','{"done": true, "sound": {"g1-gpu0-a": "g3-gpu0-a", "g3-gpu0-a": "g1-gpu0-a"}}',3,'0.1.0','975374943c46b652cb80f8c9126234a98dc004e96668e933782957fbddaad8ed','103f112ad76a4c287ffa248eac94aac229088447deb297ec50c9b60d2836146d');
INSERT INTO "journal" VALUES(28,'rollback-0003',1.79531465062261605261e+09,'intent','2','{"do": "transmit", "title": "light the transmitter of g2-gpu0-a"}',3,'0.1.0','103f112ad76a4c287ffa248eac94aac229088447deb297ec50c9b60d2836146d','ea11ec79ce681c4ac71389ac7223d61e4f7ac4f77df37da52f261483031a90a0');
INSERT INTO "journal" VALUES(29,'rollback-0003',1.79531465063074851034e+09,'outcome','2','{"done": true, "is": true, "was": false}',3,'0.1.0','ea11ec79ce681c4ac71389ac7223d61e4f7ac4f77df37da52f261483031a90a0','bd6a27f4728ba4ef7eb4d1b7bae632d01f7fdf4f8dcaca2b4e2e73fd93f427cb');
INSERT INTO "journal" VALUES(30,'rollback-0003',1.79531465063818383223e+09,'intent','3','{"do": "program", "title": "program 5 PUCs of mesh"}',3,'0.1.0','bd6a27f4728ba4ef7eb4d1b7bae632d01f7fdf4f8dcaca2b4e2e73fd93f427cb','f60066e2cde70e0cb0f79f6bab4e67e5f75f3e850e4b49626b2c153a4788c2bf');
INSERT INTO "journal" VALUES(31,'rollback-0003',1.7953146506523349285e+09,'outcome','3','{"answer": "ok 5 cells set", "cells": 5, "done": true, "revert_timer": "ours"}',3,'0.1.0','f60066e2cde70e0cb0f79f6bab4e67e5f75f3e850e4b49626b2c153a4788c2bf','6a4b0126a05c73b398b26a26b9e2094ce019caf06a45940d4f305023353dcfcc');
INSERT INTO "journal" VALUES(32,'rollback-0003',1.79531465066269540781e+09,'intent','4','{"do": "verify", "title": "verify 1 new circuits and 0 others on the same devices"}',3,'0.1.0','6a4b0126a05c73b398b26a26b9e2094ce019caf06a45940d4f305023353dcfcc','dd32df62c11ffc6f9975fc353ddc7d8dee363d88189dd7887d7e9ee8a9584fc6');
INSERT INTO "journal" VALUES(33,'rollback-0003',1.79531465068361759185e+09,'outcome','4','{"done": true, "kept": 0, "proofs": [{"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g2-gpu0-a", "seconds": 0.013, "transmitter": "g1-gpu0-a"}, {"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g1-gpu0-a", "seconds": 0.013, "transmitter": "g2-gpu0-a"}]}',3,'0.1.0','dd32df62c11ffc6f9975fc353ddc7d8dee363d88189dd7887d7e9ee8a9584fc6','bd96066d2842c5a97ef7495d015deaf1041c6722596c657f634280c8fba9596c');
INSERT INTO "journal" VALUES(34,'rollback-0003',1.7953146506855347156e+09,'intent','5','{"do": "assign", "title": "write down where pair runs"}',3,'0.1.0','bd96066d2842c5a97ef7495d015deaf1041c6722596c657f634280c8fba9596c','fbcbc1578307bfe0a6d24c42d703db812aabeb6e32584c7c074ce753b35015c5');
INSERT INTO "journal" VALUES(35,'rollback-0003',1.79531465068712687499e+09,'outcome','5','{"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "done": true}',3,'0.1.0','fbcbc1578307bfe0a6d24c42d703db812aabeb6e32584c7c074ce753b35015c5','8b07bc04f6922ec7d23314c1d26bf442a783efa49deeff5270c7c546b9bdf5f0');
INSERT INTO "journal" VALUES(36,'rollback-0003',1.7953146506946454048e+09,'end','','{"seconds": 0.1074, "state": "done"}',3,'0.1.0','8b07bc04f6922ec7d23314c1d26bf442a783efa49deeff5270c7c546b9bdf5f0','13a13b4314c0c09a4217dec92c999a8b658e9956cb9f61ef9c6f83a788b8730a');
INSERT INTO "journal" VALUES(37,'swap-0004',1.79531465077494645126e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "plan": "7610283c0338922aaa36a3b8c482de0b363f22213a0df50f62544a3940b2b845", "target": "sim", "title": "pair: replace g2-gpu0 by g3-gpu0", "who": "ops@console from 10.0.0.7"}',4,'0.1.0','13a13b4314c0c09a4217dec92c999a8b658e9956cb9f61ef9c6f83a788b8730a','c33acb4863362178f96990cda3e681ecb9fc8a107eeac1ad620d8da4181d0449');
INSERT INTO "journal" VALUES(38,'swap-0004',1.79531465079123139384e+09,'intent','1','{"do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuits are sound"}',4,'0.1.0','c33acb4863362178f96990cda3e681ecb9fc8a107eeac1ad620d8da4181d0449','8c44d4f94249c71a0eac0608b676efdfe804e929ddff6b7e3e2653e8d78a8278');
INSERT INTO "journal" VALUES(39,'swap-0004',1.79531465082934045792e+09,'outcome','1','{"done": true, "sound": {"g1-gpu0-a": "g2-gpu0-a", "g2-gpu0-a": "g1-gpu0-a"}}',4,'0.1.0','8c44d4f94249c71a0eac0608b676efdfe804e929ddff6b7e3e2653e8d78a8278','2e166e5814b77843db66fc0276b7e0ad13accd2bb97b7e2161e3656b8efdfc13');
INSERT INTO "journal" VALUES(40,'swap-0004',1.79531465083751893044e+09,'intent','2','{"do": "transmit", "title": "darken the transmitter of g2-gpu0-a"}',4,'0.1.0','2e166e5814b77843db66fc0276b7e0ad13accd2bb97b7e2161e3656b8efdfc13','3ba46d4a2c23f7b7ff5b977fe4adb9aad5cd2797faec2a26a77cba7e8fbf34cd');
INSERT INTO "journal" VALUES(41,'swap-0004',1.79531465084644556049e+09,'outcome','2','{"done": true, "is": false, "was": true}',4,'0.1.0','3ba46d4a2c23f7b7ff5b977fe4adb9aad5cd2797faec2a26a77cba7e8fbf34cd','7fbb50c329838897bc12656e238582ad0c5f5e1104fddc92e66381fe9436c4d5');
INSERT INTO "journal" VALUES(42,'swap-0004',1.79531465084826683995e+09,'intent','3','{"do": "transmit", "title": "light the transmitter of g3-gpu0-a"}',4,'0.1.0','7fbb50c329838897bc12656e238582ad0c5f5e1104fddc92e66381fe9436c4d5','d1917dfc2cc163ce8c1a4eafc1767ff28fea3dd655c36bdd19ee34127b844450');
INSERT INTO "journal" VALUES(43,'swap-0004',1.79531465085624790194e+09,'outcome','3','{"done": true, "is": true, "was": true}',4,'0.1.0','d1917dfc2cc163ce8c1a4eafc1767ff28fea3dd655c36bdd19ee34127b844450','daf8a8eb560538aa93cbf12ee283ddad1604f729b29217119c17128076867ef3');
INSERT INTO "journal" VALUES(44,'swap-0004',1.79531465085883736605e+09,'intent','4','{"do": "program", "title": "program 5 PUCs of mesh"}',4,'0.1.0','daf8a8eb560538aa93cbf12ee283ddad1604f729b29217119c17128076867ef3','d4a9163f59d53ee851736811e453eed01fccc753f8bad4775a5aacbf9740a81a');
INSERT INTO "journal" VALUES(45,'swap-0004',1.79531465086836385732e+09,'outcome','4','{"answer": "ok 5 cells set", "cells": 5, "done": true, "revert_timer": "ours"}',4,'0.1.0','d4a9163f59d53ee851736811e453eed01fccc753f8bad4775a5aacbf9740a81a','ddca47714fbbb5b9200b2d4b36e2aa897c4d2ec2467871a7db12c3eda2f2b48d');
INSERT INTO "journal" VALUES(46,'swap-0004',1.79531465087439942359e+09,'intent','5','{"do": "verify", "title": "verify 1 new circuits and 0 others on the same devices"}',4,'0.1.0','ddca47714fbbb5b9200b2d4b36e2aa897c4d2ec2467871a7db12c3eda2f2b48d','f85e5267c21958de508acbde5e873016a2daf1e429357ee4173659fff9f160a4');
INSERT INTO "journal" VALUES(47,'swap-0004',1.7953146519097940922e+09,'outcome','5','{"failed": "light was not verified within 1.0 s: g1-gpu0-a hears nobody instead of g3-gpu0-a"}',4,'0.1.0','f85e5267c21958de508acbde5e873016a2daf1e429357ee4173659fff9f160a4','ae2e8303e96e6053d2c1e136afaee256728338dd0287d0a0fd4740c4aa9e3e7d');
INSERT INTO "journal" VALUES(48,'swap-0004',1.79531465191209316256e+09,'undo-intent','5','{"do": "verify", "title": "verify 1 new circuits and 0 others on the same devices"}',4,'0.1.0','ae2e8303e96e6053d2c1e136afaee256728338dd0287d0a0fd4740c4aa9e3e7d','ec2492c9fb063377db5e4d8c718753cbbbf001d7442bc21f509fc2f7cdff6193');
INSERT INTO "journal" VALUES(49,'swap-0004',1.79531465191424202914e+09,'undo-outcome','5','{"undone": true}',4,'0.1.0','ec2492c9fb063377db5e4d8c718753cbbbf001d7442bc21f509fc2f7cdff6193','487d2ae9c966de3076fab4afeb60babd6d3541c915295c35d65c959b4fe76c5e');
INSERT INTO "journal" VALUES(50,'swap-0004',1.79531465191571021084e+09,'undo-intent','4','{"do": "program", "title": "program 5 PUCs of mesh"}',4,'0.1.0','487d2ae9c966de3076fab4afeb60babd6d3541c915295c35d65c959b4fe76c5e','1fbebe93f29bbeeba72b7a946e5e4aa3220044e94f02c823bda67160a7393106');
INSERT INTO "journal" VALUES(51,'swap-0004',1.79531465192837786674e+09,'undo-outcome','4','{"cells": 5, "undone": true}',4,'0.1.0','1fbebe93f29bbeeba72b7a946e5e4aa3220044e94f02c823bda67160a7393106','b1fe659e500ea44b3672f26f6d7799a970b46b17410637c89adb50099b3dedc7');
INSERT INTO "journal" VALUES(52,'swap-0004',1.79531465193057632448e+09,'undo-intent','3','{"do": "transmit", "title": "light the transmitter of g3-gpu0-a"}',4,'0.1.0','b1fe659e500ea44b3672f26f6d7799a970b46b17410637c89adb50099b3dedc7','bf7a44cd570d11abe73978310fddc8760cc963881ce3e8424b9a0fe1231dfd8a');
INSERT INTO "journal" VALUES(53,'swap-0004',1.79531465193205738064e+09,'undo-outcome','3','{"is": true, "undone": true}',4,'0.1.0','bf7a44cd570d11abe73978310fddc8760cc963881ce3e8424b9a0fe1231dfd8a','d0c2765e9ec7bb1e4b179ce442fb7d9d805ae7c028975371efde53c42d750299');
INSERT INTO "journal" VALUES(54,'swap-0004',1.79531465193839073184e+09,'undo-intent','2','{"do": "transmit", "title": "darken the transmitter of g2-gpu0-a"}',4,'0.1.0','d0c2765e9ec7bb1e4b179ce442fb7d9d805ae7c028975371efde53c42d750299','eb136ee9e6f249a2c6bc70c9668a61cf3d305e2126269c39dd28c692654891a6');
INSERT INTO "journal" VALUES(55,'swap-0004',1.79531465194319152832e+09,'undo-outcome','2','{"is": true, "undone": true}',4,'0.1.0','eb136ee9e6f249a2c6bc70c9668a61cf3d305e2126269c39dd28c692654891a6','d106bb7503a74db26768548354290a3834d071d9d56149de8cf6ee5a915f0b09');
INSERT INTO "journal" VALUES(56,'swap-0004',1.79531465194480681422e+09,'undo-intent','1','{"do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuits are sound"}',4,'0.1.0','d106bb7503a74db26768548354290a3834d071d9d56149de8cf6ee5a915f0b09','1a629aedc801b1c57b699c76a136b3b55d43c508afb2ddd804393c09b340c201');
INSERT INTO "journal" VALUES(57,'swap-0004',1.79531465194593095775e+09,'undo-outcome','1','{"undone": true}',4,'0.1.0','1a629aedc801b1c57b699c76a136b3b55d43c508afb2ddd804393c09b340c201','a03ef3a8c3eb485eeb0433a76413b7eb1c6fda9c7daa6c563fa61f1255602bcd');
INSERT INTO "journal" VALUES(58,'swap-0004',1.79531465195852708814e+09,'end','','{"failed": "light was not verified within 1.0 s: g1-gpu0-a hears nobody instead of g3-gpu0-a", "state": "rolled-back"}',4,'0.1.0','a03ef3a8c3eb485eeb0433a76413b7eb1c6fda9c7daa6c563fa61f1255602bcd','41184556bc958cc02767dc8fa567e2bccc49bb0d28b3024bc30fa80e34b5609b');
INSERT INTO "journal" VALUES(59,'set-0005',1.79531465197866249086e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "plan": "cd03875273759a5c1625f98e631a46ccf108c0adeb8bbd4d23ffd9c3f106d5d4", "target": "sim", "title": "set g3-gpu0-a transmit=off", "who": "ops@console from 10.0.0.7"}',5,'0.1.0','41184556bc958cc02767dc8fa567e2bccc49bb0d28b3024bc30fa80e34b5609b','f781aa6c2569f47699d7bb14cdf3a5afa32317ef5db58a360fb17d1bcf564707');
INSERT INTO "journal" VALUES(60,'set-0005',1.79531465198315310478e+09,'intent','1','{"do": "set", "title": "set g3-gpu0-a transmit=off (it shows on)"}',5,'0.1.0','f781aa6c2569f47699d7bb14cdf3a5afa32317ef5db58a360fb17d1bcf564707','55228d76e3d47b0534d079e689fc8df00faf22a0918172da090f250babde603a');
INSERT INTO "journal" VALUES(61,'set-0005',1.79531465198866319651e+09,'outcome','1','{"done": true, "is": false, "was": true}',5,'0.1.0','55228d76e3d47b0534d079e689fc8df00faf22a0918172da090f250babde603a','3798f494f6f6a8cec07362ef4ba05b6be08ed61f96291cef07d4d52c9d40bedb');
INSERT INTO "journal" VALUES(62,'set-0005',1.79531465199028873441e+09,'end','','{"seconds": 0.0072, "state": "done"}',5,'0.1.0','3798f494f6f6a8cec07362ef4ba05b6be08ed61f96291cef07d4d52c9d40bedb','2ce1e23d066f6fd7e13e9e4937921816d04863cfff0efe36e5dec2306943ec33');
CREATE TABLE leases (
	rack VARCHAR(128) NOT NULL, 
	holder TEXT NOT NULL, 
	fence INTEGER NOT NULL, 
	expires_at FLOAT NOT NULL, 
	PRIMARY KEY (rack)
);
INSERT INTO "leases" VALUES('golden','ops@console from 10.0.0.7',5,0.0);
CREATE TABLE maintenance_windows (
	id VARCHAR(64) NOT NULL, 
	rack VARCHAR(128) NOT NULL, 
	component VARCHAR(256) NOT NULL, 
	"by" VARCHAR(256) NOT NULL, 
	comment TEXT NOT NULL, 
	starts FLOAT NOT NULL, 
	ends FLOAT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE meta (
	"key" VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "meta" VALUES('schema_version','2');
CREATE TABLE plans (
	id VARCHAR(64) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	created_at FLOAT NOT NULL, 
	target VARCHAR(16) NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE runs (
	id VARCHAR(64) NOT NULL, 
	rack VARCHAR(128) NOT NULL, 
	target VARCHAR(16) NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	title TEXT NOT NULL, 
	"plan" TEXT NOT NULL, 
	plan_digest VARCHAR(64) NOT NULL, 
	inventory_digest VARCHAR(64) NOT NULL, 
	who VARCHAR(256) NOT NULL, 
	version VARCHAR(32) NOT NULL, 
	fence INTEGER NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	started_at FLOAT NOT NULL, 
	ended_at FLOAT, 
	undone_by VARCHAR(64), 
	PRIMARY KEY (id)
);
INSERT INTO "runs" VALUES('fabric-0001','golden','sim','fabric','program 1 circuits of golden','{"schema": "lumctl/plan/v1", "id": "plan-5e51deb9", "digest": "5e51deb9457f79d07319a5f3f63dad30f99ee0689edbd9ee5c724e704c90add1", "kind": "fabric", "title": "program 1 circuits of golden", "rack": "golden", "target": "sim", "created_at": 1795314650.0025692, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.801, "warnings": ["mesh is written whole: all it carries goes dark meanwhile"], "replacements": [], "candidates": [], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g2-gpu0-a", "port": 5}], "pucs": [0, 1, 2, 3, 4], "loss_db": 3.25, "expected_rx_dbm": -1.25}], "remove": [], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 0, "from": null, "to": "x"}, {"device": "mesh", "puc": 1, "from": null, "to": "x"}, {"device": "mesh", "puc": 2, "from": null, "to": "x"}, {"device": "mesh", "puc": 3, "from": null, "to": "x"}, {"device": "mesh", "puc": 4, "from": null, "to": "="}, {"device": "mesh", "puc": 5, "from": null, "to": "="}, {"device": "mesh", "puc": 6, "from": null, "to": "="}, {"device": "mesh", "puc": 7, "from": null, "to": "="}, {"device": "mesh", "puc": 8, "from": null, "to": "="}, {"device": "mesh", "puc": 9, "from": null, "to": "="}, {"device": "mesh", "puc": 10, "from": null, "to": "="}, {"device": "mesh", "puc": 11, "from": null, "to": "="}, {"device": "mesh", "puc": 12, "from": null, "to": "="}, {"device": "mesh", "puc": 13, "from": null, "to": "="}, {"device": "mesh", "puc": 14, "from": null, "to": "="}, {"device": "mesh", "puc": 15, "from": null, "to": "="}, {"device": "mesh", "puc": 16, "from": null, "to": "="}, {"device": "mesh", "puc": 17, "from": null, "to": "="}, {"device": "mesh", "puc": 18, "from": null, "to": "="}, {"device": "mesh", "puc": 19, "from": null, "to": "="}, {"device": "mesh", "puc": 20, "from": null, "to": "="}, {"device": "mesh", "puc": 21, "from": null, "to": "="}, {"device": "mesh", "puc": 22, "from": null, "to": "="}, {"device": "mesh", "puc": 23, "from": null, "to": "="}, {"device": "mesh", "puc": 24, "from": null, "to": "="}, {"device": "mesh", "puc": 25, "from": null, "to": "="}, {"device": "mesh", "puc": 26, "from": null, "to": "="}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "find which of 0 circuits are sound", "data": {"healthy": [], "kept": [], "replaced": []}, "precondition": "", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.2}, {"id": "2", "do": "program", "title": "program 27 PUCs of mesh", "data": {"device": "mesh", "changes": [[0, null, "x"], [1, null, "x"], [2, null, "x"], [3, null, "x"], [4, null, "="], [5, null, "="], [6, null, "="], [7, null, "="], [8, null, "="], [9, null, "="], [10, null, "="], [11, null, "="], [12, null, "="], [13, null, "="], [14, null, "="], [15, null, "="], [16, null, "="], [17, null, "="], [18, null, "="], [19, null, "="], [20, null, "="], [21, null, "="], [22, null, "="], [23, null, "="], [24, null, "="], [25, null, "="], [26, null, "="]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 27 states from before", "required": true, "expected_seconds": 0.101}, {"id": "3", "do": "verify", "title": "verify 1 new circuits and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.5}, {"id": "4", "do": "assign", "title": "write down where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "before": {"pair": ["g1-gpu0", "g2-gpu0"]}}, "precondition": "", "verification": "", "undo": "write down the placement from before", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {}}}','5e51deb9457f79d07319a5f3f63dad30f99ee0689edbd9ee5c724e704c90add1','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',1,'done',1.79531465002444982521e+09,1.79531465013633966445e+09,NULL);
INSERT INTO "runs" VALUES('swap-0002','golden','sim','swap','pair: replace g2-gpu0 by g3-gpu0','{"schema": "lumctl/plan/v1", "id": "plan-8a185f2b", "digest": "8a185f2bf2c6b46936edfec1e6e755e090b46c88cd62d0d669992d2ef294d7d7", "kind": "swap", "title": "pair: replace g2-gpu0 by g3-gpu0", "rack": "golden", "target": "sim", "created_at": 1795314650.202378, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 1.001, "warnings": [], "replacements": [{"job": "pair", "rank": 1, "failed": "g2-gpu0", "spare": "g3-gpu0"}], "candidates": [{"failed": "g2-gpu0", "spare": "g3-gpu0", "chosen": true, "reasons": ["the shortest light paths", "10 PUCs in new circuits, 5 cells to write, worst loss 4.50 dB"]}], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g3-gpu0-a", "port": 10}], "pucs": [0, 1, 2, 3, 8, 14, 19, 25, 26, 20], "loss_db": 4.5, "expected_rx_dbm": -2.5}], "remove": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g2-gpu0-a", "port": 5}], "pucs": [0, 1, 2, 3, 4], "loss_db": 3.25, "expected_rx_dbm": -1.25}], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 3, "from": "x", "to": "="}, {"device": "mesh", "puc": 8, "from": "=", "to": "x"}, {"device": "mesh", "puc": 14, "from": "=", "to": "x"}, {"device": "mesh", "puc": 19, "from": "=", "to": "x"}, {"device": "mesh", "puc": 20, "from": "=", "to": "x"}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuits are sound", "data": {"healthy": ["g3-gpu0"], "kept": [], "replaced": ["pair/0-1"]}, "precondition": "a fresh reading says ok", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.2}, {"id": "2", "do": "transmit", "title": "darken the transmitter of g2-gpu0-a", "data": {"transponder": "g2-gpu0-a", "enabled": false}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": false, "expected_seconds": 0.1}, {"id": "3", "do": "transmit", "title": "light the transmitter of g3-gpu0-a", "data": {"transponder": "g3-gpu0-a", "enabled": true}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": true, "expected_seconds": 0.1}, {"id": "4", "do": "program", "title": "program 5 PUCs of mesh", "data": {"device": "mesh", "changes": [[3, "x", "="], [8, "=", "x"], [14, "=", "x"], [19, "=", "x"], [20, "=", "x"]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 5 states from before", "required": true, "expected_seconds": 0.101}, {"id": "5", "do": "verify", "title": "verify 1 new circuits and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.5}, {"id": "6", "do": "assign", "title": "write down where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "before": {"pair": ["g1-gpu0", "g2-gpu0"]}}, "precondition": "", "verification": "", "undo": "write down the placement from before", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {"mesh": [0, 1, 2, 3]}}}','8a185f2bf2c6b46936edfec1e6e755e090b46c88cd62d0d669992d2ef294d7d7','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',2,'undone',1.79531465031953358646e+09,1.79531465051412582401e+09,'rollback-0003');
INSERT INTO "runs" VALUES('rollback-0003','golden','sim','rollback','take back swap-0002 (pair: replace g2-gpu0 by g3-gpu0)','{"schema": "lumctl/plan/v1", "id": "plan-a1ac7a6f", "digest": "a1ac7a6f62afed71c0f467dab289a9e1c42eddef60eecfc3f75e2b1f2de1686c", "kind": "rollback", "title": "take back swap-0002 (pair: replace g2-gpu0 by g3-gpu0)", "rack": "golden", "target": "sim", "created_at": 1795314650.5592945, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": "swap-0002", "expected_seconds": 0.901, "warnings": [], "replacements": [], "candidates": [], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g2-gpu0-a", "port": 5}], "pucs": [0, 1, 2, 3, 4], "loss_db": 3.25, "expected_rx_dbm": -1.25}], "remove": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g3-gpu0-a", "port": 10}], "pucs": [0, 1, 2, 3, 8, 14, 19, 25, 26, 20], "loss_db": 4.5, "expected_rx_dbm": -2.5}], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 3, "from": "=", "to": "x"}, {"device": "mesh", "puc": 8, "from": "x", "to": "="}, {"device": "mesh", "puc": 14, "from": "x", "to": "="}, {"device": "mesh", "puc": 19, "from": "x", "to": "="}, {"device": "mesh", "puc": 20, "from": "x", "to": "="}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "find which of 1 circuits are sound", "data": {"healthy": [], "kept": [], "replaced": ["pair/0-1"]}, "precondition": "", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.2}, {"id": "2", "do": "transmit", "title": "light the transmitter of g2-gpu0-a", "data": {"transponder": "g2-gpu0-a", "enabled": true}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": false, "expected_seconds": 0.1}, {"id": "3", "do": "program", "title": "program 5 PUCs of mesh", "data": {"device": "mesh", "changes": [[3, "=", "x"], [8, "x", "="], [14, "x", "="], [19, "x", "="], [20, "x", "="]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 5 states from before", "required": true, "expected_seconds": 0.101}, {"id": "4", "do": "verify", "title": "verify 1 new circuits and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.5}, {"id": "5", "do": "assign", "title": "write down where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "before": {"pair": ["g1-gpu0", "g3-gpu0"]}}, "precondition": "", "verification": "", "undo": "write down the placement from before", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "crosses": {"mesh": [0, 1, 2, 8, 14, 19, 20]}}}','a1ac7a6f62afed71c0f467dab289a9e1c42eddef60eecfc3f75e2b1f2de1686c','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',3,'done',1.7953146505789983273e+09,1.7953146506946454048e+09,NULL);
INSERT INTO "runs" VALUES('swap-0004','golden','sim','swap','pair: replace g2-gpu0 by g3-gpu0','{"schema": "lumctl/plan/v1", "id": "plan-7610283c", "digest": "7610283c0338922aaa36a3b8c482de0b363f22213a0df50f62544a3940b2b845", "kind": "swap", "title": "pair: replace g2-gpu0 by g3-gpu0", "rack": "golden", "target": "sim", "created_at": 1795314650.7388923, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 1.001, "warnings": [], "replacements": [{"job": "pair", "rank": 1, "failed": "g2-gpu0", "spare": "g3-gpu0"}], "candidates": [{"failed": "g2-gpu0", "spare": "g3-gpu0", "chosen": true, "reasons": ["the shortest light paths", "10 PUCs in new circuits, 5 cells to write, worst loss 4.50 dB"]}], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g3-gpu0-a", "port": 10}], "pucs": [0, 1, 2, 3, 8, 14, 19, 25, 26, 20], "loss_db": 4.5, "expected_rx_dbm": -2.5}], "remove": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g2-gpu0-a", "port": 5}], "pucs": [0, 1, 2, 3, 4], "loss_db": 3.25, "expected_rx_dbm": -1.25}], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 3, "from": "x", "to": "="}, {"device": "mesh", "puc": 8, "from": "=", "to": "x"}, {"device": "mesh", "puc": 14, "from": "=", "to": "x"}, {"device": "mesh", "puc": 19, "from": "=", "to": "x"}, {"device": "mesh", "puc": 20, "from": "=", "to": "x"}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuits are sound", "data": {"healthy": ["g3-gpu0"], "kept": [], "replaced": ["pair/0-1"]}, "precondition": "a fresh reading says ok", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.2}, {"id": "2", "do": "transmit", "title": "darken the transmitter of g2-gpu0-a", "data": {"transponder": "g2-gpu0-a", "enabled": false}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": false, "expected_seconds": 0.1}, {"id": "3", "do": "transmit", "title": "light the transmitter of g3-gpu0-a", "data": {"transponder": "g3-gpu0-a", "enabled": true}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": true, "expected_seconds": 0.1}, {"id": "4", "do": "program", "title": "program 5 PUCs of mesh", "data": {"device": "mesh", "changes": [[3, "x", "="], [8, "=", "x"], [14, "=", "x"], [19, "=", "x"], [20, "=", "x"]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 5 states from before", "required": true, "expected_seconds": 0.101}, {"id": "5", "do": "verify", "title": "verify 1 new circuits and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.5}, {"id": "6", "do": "assign", "title": "write down where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "before": {"pair": ["g1-gpu0", "g2-gpu0"]}}, "precondition": "", "verification": "", "undo": "write down the placement from before", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {"mesh": [0, 1, 2, 3]}}}','7610283c0338922aaa36a3b8c482de0b363f22213a0df50f62544a3940b2b845','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',4,'rolled-back',1.79531465077494645126e+09,1.79531465195852708814e+09,NULL);
INSERT INTO "runs" VALUES('set-0005','golden','sim','set','set g3-gpu0-a transmit=off','{"schema": "lumctl/plan/v1", "id": "plan-cd038752", "digest": "cd03875273759a5c1625f98e631a46ccf108c0adeb8bbd4d23ffd9c3f106d5d4", "kind": "set", "title": "set g3-gpu0-a transmit=off", "rack": "golden", "target": "sim", "created_at": 1795314651.967163, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.1, "warnings": [], "replacements": [], "candidates": [], "circuits": {"add": [], "remove": [], "keep": []}, "puc_changes": [], "join_changes": [], "steps": [{"id": "1", "do": "set", "title": "set g3-gpu0-a transmit=off (it shows on)", "data": {"component": "g3-gpu0-a", "setting": "transmit", "before": true, "after": false, "disturbs": []}, "precondition": "g3-gpu0-a shows transmit=on", "verification": "read back", "undo": "set transmit=on", "required": true, "expected_seconds": 0.1}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {}}}','cd03875273759a5c1625f98e631a46ccf108c0adeb8bbd4d23ffd9c3f106d5d4','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',5,'done',1.79531465197866249086e+09,1.79531465199028873441e+09,NULL);
CREATE TABLE transitions (
	seq INTEGER NOT NULL, 
	rack VARCHAR(128) NOT NULL, 
	at FLOAT NOT NULL, 
	component VARCHAR(256) NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	"before" VARCHAR(16), 
	"after" VARCHAR(16) NOT NULL, 
	rules TEXT NOT NULL, 
	evidence TEXT NOT NULL, 
	PRIMARY KEY (seq)
);
CREATE INDEX ix_journal_run ON journal (run);
CREATE INDEX ix_maintenance_windows_rack ON maintenance_windows (rack);
CREATE INDEX transitions_of_a_component ON transitions (rack, component, seq);
COMMIT;
