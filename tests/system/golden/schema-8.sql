BEGIN TRANSACTION;
CREATE TABLE acknowledgements (
	rack VARCHAR NOT NULL, 
	component VARCHAR NOT NULL, 
	rule VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	comment TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	until FLOAT, 
	covers TEXT, 
	PRIMARY KEY (rack, component, rule)
);
INSERT INTO "acknowledgements" VALUES('golden','g2-gpu0','','ops@console from 10.0.0.7','the vendor is called',1.79565570681415343284e+09,1.79566290681415343289e+09,NULL);
CREATE TABLE approvals (
	rack VARCHAR NOT NULL, 
	"plan" VARCHAR NOT NULL, 
	policy VARCHAR NOT NULL, 
	made_by VARCHAR NOT NULL, 
	asked_at FLOAT NOT NULL, 
	expires_at FLOAT NOT NULL, 
	by_another INTEGER NOT NULL, 
	state VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	comment TEXT NOT NULL, 
	answered_at FLOAT, 
	PRIMARY KEY (rack, "plan")
);
CREATE TABLE assignment (
	rack VARCHAR NOT NULL, 
	job VARCHAR NOT NULL, 
	rank INTEGER NOT NULL, 
	accelerator VARCHAR NOT NULL, 
	run VARCHAR NOT NULL, 
	PRIMARY KEY (rack, job, rank)
);
INSERT INTO "assignment" VALUES('golden','pair',0,'g1-gpu0','rollback-0003');
INSERT INTO "assignment" VALUES('golden','pair',1,'g2-gpu0','rollback-0003');
CREATE TABLE demands (
	rack VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	job VARCHAR NOT NULL, 
	accelerators TEXT NOT NULL, 
	who VARCHAR NOT NULL, 
	asked_at FLOAT NOT NULL, 
	state VARCHAR NOT NULL, 
	why TEXT NOT NULL, 
	run VARCHAR NOT NULL, 
	ended_at FLOAT, 
	PRIMARY KEY (rack, id)
);
CREATE TABLE device_states (
	rack VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	puc INTEGER NOT NULL, 
	state VARCHAR NOT NULL, 
	PRIMARY KEY (rack, device, puc)
);
INSERT INTO "device_states" VALUES('golden','mesh',0,'x');
INSERT INTO "device_states" VALUES('golden','mesh',1,'x');
INSERT INTO "device_states" VALUES('golden','mesh',2,'x');
INSERT INTO "device_states" VALUES('golden','mesh',3,'x');
INSERT INTO "device_states" VALUES('golden','mesh',4,'=');
INSERT INTO "device_states" VALUES('golden','mesh',5,'=');
INSERT INTO "device_states" VALUES('golden','mesh',6,'=');
INSERT INTO "device_states" VALUES('golden','mesh',7,'=');
INSERT INTO "device_states" VALUES('golden','mesh',8,'=');
INSERT INTO "device_states" VALUES('golden','mesh',9,'=');
INSERT INTO "device_states" VALUES('golden','mesh',10,'=');
INSERT INTO "device_states" VALUES('golden','mesh',11,'=');
INSERT INTO "device_states" VALUES('golden','mesh',12,'=');
INSERT INTO "device_states" VALUES('golden','mesh',13,'=');
INSERT INTO "device_states" VALUES('golden','mesh',14,'=');
INSERT INTO "device_states" VALUES('golden','mesh',15,'=');
INSERT INTO "device_states" VALUES('golden','mesh',16,'=');
INSERT INTO "device_states" VALUES('golden','mesh',17,'=');
INSERT INTO "device_states" VALUES('golden','mesh',18,'=');
INSERT INTO "device_states" VALUES('golden','mesh',19,'=');
INSERT INTO "device_states" VALUES('golden','mesh',20,'=');
INSERT INTO "device_states" VALUES('golden','mesh',21,'=');
INSERT INTO "device_states" VALUES('golden','mesh',22,'=');
INSERT INTO "device_states" VALUES('golden','mesh',23,'=');
INSERT INTO "device_states" VALUES('golden','mesh',24,'=');
INSERT INTO "device_states" VALUES('golden','mesh',25,'=');
INSERT INTO "device_states" VALUES('golden','mesh',26,'=');
CREATE TABLE devices (
	rack VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	certain INTEGER NOT NULL, 
	run VARCHAR NOT NULL, 
	PRIMARY KEY (rack, device)
);
INSERT INTO "devices" VALUES('golden','mesh',1,'swap-0004');
CREATE TABLE event_clears (
	rack VARCHAR NOT NULL, 
	component VARCHAR NOT NULL, 
	rule VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	reason TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (rack, component, rule)
);
CREATE TABLE health_memory (
	rack VARCHAR NOT NULL, 
	at FLOAT NOT NULL, 
	document TEXT NOT NULL, 
	PRIMARY KEY (rack)
);
CREATE TABLE journal (
	rack VARCHAR NOT NULL, 
	seq INTEGER NOT NULL, 
	run VARCHAR NOT NULL, 
	at FLOAT NOT NULL, 
	kind VARCHAR NOT NULL, 
	step VARCHAR NOT NULL, 
	data TEXT NOT NULL, 
	fence INTEGER NOT NULL, 
	version VARCHAR NOT NULL, 
	previous VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, 
	PRIMARY KEY (rack, seq)
);
INSERT INTO "journal" VALUES('golden',1,'fabric-0001',1.7956557049476487637e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "fabric", "plan": "031eac5e012099544a8ad3e29fa3fae95b3b2ad299240ba0b3103c72ef5d0f65", "rack": "golden", "target": "sim", "title": "program 1 circuits of golden", "who": "ops@console from 10.0.0.7"}',1,'0.1.0','0000000000000000000000000000000000000000000000000000000000000000','ca4f6b4f529d431fc12781744b6d7288aa32a39baed59da913735f775579e2b5');
INSERT INTO "journal" VALUES('golden',2,'fabric-0001',1.79565570495709276198e+09,'intent','1','{"do": "check", "title": "find which of 0 circuits are sound"}',1,'0.1.0','ca4f6b4f529d431fc12781744b6d7288aa32a39baed59da913735f775579e2b5','0aeea20c84f851d26387814d2a3dbe6b5d47e7d3a1f51829b65c8bb53b1c3d67');
INSERT INTO "journal" VALUES('golden',3,'fabric-0001',1.79565570496019577982e+09,'outcome','1','{"done": true, "sound": {}}',1,'0.1.0','0aeea20c84f851d26387814d2a3dbe6b5d47e7d3a1f51829b65c8bb53b1c3d67','3c1d4cff4bd74fc42c0fefcaa8c530969a3c161db124fdfbac03ad3abf13adca');
INSERT INTO "journal" VALUES('golden',4,'fabric-0001',1.79565570496059203143e+09,'intent','2','{"do": "program", "title": "program 27 PUCs of mesh"}',1,'0.1.0','3c1d4cff4bd74fc42c0fefcaa8c530969a3c161db124fdfbac03ad3abf13adca','9483cfc6b6010f5efc90995e1896e2dc3777119046cab37bf7109ccb45902bd0');
INSERT INTO "journal" VALUES('golden',5,'fabric-0001',1.79565570496609330179e+09,'outcome','2','{"answer": "ok 27 cells set", "cells": 27, "done": true, "revert_timer": "none"}',1,'0.1.0','9483cfc6b6010f5efc90995e1896e2dc3777119046cab37bf7109ccb45902bd0','e1d3be850c481643c41c656b25d7589305dcc63e303a4fc6c1be285d92325fd9');
INSERT INTO "journal" VALUES('golden',6,'fabric-0001',1.79565570496614551544e+09,'intent','3','{"do": "verify", "title": "verify 1 new circuit and 0 others on the same devices"}',1,'0.1.0','e1d3be850c481643c41c656b25d7589305dcc63e303a4fc6c1be285d92325fd9','9393faa2b958061059670a4db0750c2173d70df6234df9a436f3ef1c0891f7c7');
INSERT INTO "journal" VALUES('golden',7,'fabric-0001',1.79565570500097918512e+09,'outcome','3','{"done": true, "kept": 0, "proofs": [{"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g2-gpu0-a", "seconds": 0.033, "transmitter": "g1-gpu0-a"}, {"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g1-gpu0-a", "seconds": 0.033, "transmitter": "g2-gpu0-a"}]}',1,'0.1.0','9393faa2b958061059670a4db0750c2173d70df6234df9a436f3ef1c0891f7c7','7859af3b55de701d5cc2602943ae21ecb7f0af31f39a0e74bf0e608881d021b9');
INSERT INTO "journal" VALUES('golden',8,'fabric-0001',1.79565570500103521348e+09,'intent','4','{"do": "assign", "title": "record where pair runs"}',1,'0.1.0','7859af3b55de701d5cc2602943ae21ecb7f0af31f39a0e74bf0e608881d021b9','c0d9d97db9d68805cf41c286ede0e35848a6e9d77834c162ee020b104f5f6558');
INSERT INTO "journal" VALUES('golden',9,'fabric-0001',1.79565570500243759156e+09,'outcome','4','{"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "done": true}',1,'0.1.0','c0d9d97db9d68805cf41c286ede0e35848a6e9d77834c162ee020b104f5f6558','479403a9fc16cf32d8aeb3e2f93e0d7131f413d6c26ac0e54c96b974ea697452');
INSERT INTO "journal" VALUES('golden',10,'fabric-0001',1.79565570500251126288e+09,'end','','{"seconds": 0.0455, "state": "done"}',1,'0.1.0','479403a9fc16cf32d8aeb3e2f93e0d7131f413d6c26ac0e54c96b974ea697452','4cbb5d075ccdca8f65934efdde2264fc5dcdbd4c125316e2e2e4fefc3be1c375');
INSERT INTO "journal" VALUES('golden',11,'swap-0002',1.79565570522443628312e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "swap", "plan": "9b7d5571800b170caf57f4a1958f749762a9464cd740579ba477d0e06240a81c", "rack": "golden", "target": "sim", "title": "pair: replace g2-gpu0 by g3-gpu0", "who": "ops@console from 10.0.0.7"}',2,'0.1.0','4cbb5d075ccdca8f65934efdde2264fc5dcdbd4c125316e2e2e4fefc3be1c375','795a6f1888d3fdc4ced8e14e000d0045393f6ea893e5481f7ce603dcf561677b');
INSERT INTO "journal" VALUES('golden',12,'swap-0002',1.79565570524104237562e+09,'intent','1','{"do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuit are sound"}',2,'0.1.0','795a6f1888d3fdc4ced8e14e000d0045393f6ea893e5481f7ce603dcf561677b','0c88b6f22c4bd7a5917702a2cb24e1df9a0b014aec7e35e1594c28cbdf8b3df5');
INSERT INTO "journal" VALUES('golden',13,'swap-0002',1.79565570526638627057e+09,'outcome','1','{"done": true, "sound": {"g1-gpu0-a": "g2-gpu0-a", "g2-gpu0-a": "g1-gpu0-a"}, "transmitting": {"g2-gpu0-a": true, "g3-gpu0-a": true}}',2,'0.1.0','0c88b6f22c4bd7a5917702a2cb24e1df9a0b014aec7e35e1594c28cbdf8b3df5','5bdf28402a8af921fe645f61f1710366b95c090f4505a66a275bf2c244da2fab');
INSERT INTO "journal" VALUES('golden',14,'swap-0002',1.79565570526647114756e+09,'intent','2','{"do": "transmit", "title": "darken the transmitter of g2-gpu0-a"}',2,'0.1.0','5bdf28402a8af921fe645f61f1710366b95c090f4505a66a275bf2c244da2fab','530e813cc51bddcc5e26c5397f6844feb797e8e2a30482bb5bc14a9ed2961c55');
INSERT INTO "journal" VALUES('golden',15,'swap-0002',1.79565570526647353168e+09,'intent','3','{"do": "transmit", "title": "light the transmitter of g3-gpu0-a"}',2,'0.1.0','530e813cc51bddcc5e26c5397f6844feb797e8e2a30482bb5bc14a9ed2961c55','f7f859846dabfd5537afbf8f654111cc42e690c3bd60f15bc1e55719d7213fda');
INSERT INTO "journal" VALUES('golden',16,'swap-0002',1.79565570527039790153e+09,'outcome','2','{"done": true, "is": false, "was": true}',2,'0.1.0','f7f859846dabfd5537afbf8f654111cc42e690c3bd60f15bc1e55719d7213fda','00bdf6b4c072645cb2046c2eca461e7ee385fdcf1b4aa13b29f810e89fd60986');
INSERT INTO "journal" VALUES('golden',17,'swap-0002',1.79565570527041053769e+09,'outcome','3','{"done": true, "is": true, "was": true}',2,'0.1.0','00bdf6b4c072645cb2046c2eca461e7ee385fdcf1b4aa13b29f810e89fd60986','977e016f9afacfd172fa2f287eae26de7d8207ee0fd57950f1e892fdaef7a9d1');
INSERT INTO "journal" VALUES('golden',18,'swap-0002',1.79565570527104258541e+09,'intent','4','{"do": "program", "title": "program 5 PUCs of mesh"}',2,'0.1.0','977e016f9afacfd172fa2f287eae26de7d8207ee0fd57950f1e892fdaef7a9d1','08190d60149609500512874c4fb17464f58c8857b4df3265e421049aa655e210');
INSERT INTO "journal" VALUES('golden',19,'swap-0002',1.79565570527781581885e+09,'outcome','4','{"answer": "ok 5 cells set", "cells": 5, "done": true, "revert_timer": "ours"}',2,'0.1.0','08190d60149609500512874c4fb17464f58c8857b4df3265e421049aa655e210','1c735333325c79024041e874d663adc47ec60cd930ca0cfee494cd2eb8e2949c');
INSERT INTO "journal" VALUES('golden',20,'swap-0002',1.79565570527790880207e+09,'intent','5','{"do": "verify", "title": "verify 1 new circuit and 0 others on the same devices"}',2,'0.1.0','1c735333325c79024041e874d663adc47ec60cd930ca0cfee494cd2eb8e2949c','fc01788b5ae5bcda7fe7741a0672452a82b061edcd2e9e5eeb936bf03d4be9f9');
INSERT INTO "journal" VALUES('golden',21,'swap-0002',1.79565570528767156602e+09,'outcome','5','{"done": true, "kept": 0, "proofs": [{"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g3-gpu0-a", "seconds": 0.005, "transmitter": "g1-gpu0-a"}, {"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g1-gpu0-a", "seconds": 0.005, "transmitter": "g3-gpu0-a"}]}',2,'0.1.0','fc01788b5ae5bcda7fe7741a0672452a82b061edcd2e9e5eeb936bf03d4be9f9','d757508fcdb030328f43eb43009cd98ab20b459e32b7c1f741fc9cc9c8f9c07e');
INSERT INTO "journal" VALUES('golden',22,'swap-0002',1.79565570528772878644e+09,'intent','6','{"do": "assign", "title": "record where pair runs"}',2,'0.1.0','d757508fcdb030328f43eb43009cd98ab20b459e32b7c1f741fc9cc9c8f9c07e','e754fead21561193a4c67718cbf6e33341d318786915b629661304dd902060e8');
INSERT INTO "journal" VALUES('golden',23,'swap-0002',1.79565570531221508979e+09,'outcome','6','{"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "done": true}',2,'0.1.0','e754fead21561193a4c67718cbf6e33341d318786915b629661304dd902060e8','fbce829342e8e1c7291cdb6fe9de3d8fee91e436d73145e40db6abad30bf3620');
INSERT INTO "journal" VALUES('golden',24,'swap-0002',1.79565570531231141087e+09,'end','','{"seconds": 0.0713, "state": "done"}',2,'0.1.0','fbce829342e8e1c7291cdb6fe9de3d8fee91e436d73145e40db6abad30bf3620','87b09fea18e145d35bdfa7729b7d3c2608348bb4723854c09013efcfe3a1602f');
INSERT INTO "journal" VALUES('golden',25,'rollback-0003',1.79565570539800810814e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "rollback", "plan": "2e934be4abe99a88b6dee5ac6aa2213be091edbad1031a09dd32c5f757942409", "rack": "golden", "target": "sim", "title": "take back swap-0002 (pair: replace g2-gpu0 by g3-gpu0)", "who": "ops@console from 10.0.0.7"}',3,'0.1.0','87b09fea18e145d35bdfa7729b7d3c2608348bb4723854c09013efcfe3a1602f','ed24d81b94e88da78a4d877d6bee13dcf039c4f1554608c47e6ca4265e8bcf1c');
INSERT INTO "journal" VALUES('golden',26,'rollback-0003',1.79565570540876221655e+09,'intent','1','{"do": "check", "title": "find which of 1 circuit are sound"}',3,'0.1.0','ed24d81b94e88da78a4d877d6bee13dcf039c4f1554608c47e6ca4265e8bcf1c','a9348e099f2bdad37990aff3b7ee2db08362a27d7dffe3b12626446f0b18a374');
INSERT INTO "journal" VALUES('golden',27,'rollback-0003',1.79565570542200970646e+09,'outcome','1','{"done": true, "sound": {"g1-gpu0-a": "g3-gpu0-a", "g3-gpu0-a": "g1-gpu0-a"}, "transmitting": {"g2-gpu0-a": false}}',3,'0.1.0','a9348e099f2bdad37990aff3b7ee2db08362a27d7dffe3b12626446f0b18a374','f7bf1ce5ead64284c6e0badb6bce648d00555e9c42805879f9c6d66239907ddc');
INSERT INTO "journal" VALUES('golden',28,'rollback-0003',1.79565570542207717896e+09,'intent','2','{"do": "transmit", "title": "light the transmitter of g2-gpu0-a"}',3,'0.1.0','f7bf1ce5ead64284c6e0badb6bce648d00555e9c42805879f9c6d66239907ddc','bc7d1eef3fc908bd9c8d64f65e74cb72f8b1ef852ba81ef6e751498568f7959d');
INSERT INTO "journal" VALUES('golden',29,'rollback-0003',1.79565570542516303063e+09,'outcome','2','{"done": true, "is": true, "was": false}',3,'0.1.0','bc7d1eef3fc908bd9c8d64f65e74cb72f8b1ef852ba81ef6e751498568f7959d','5719f00537d588c770adad6594b8034bef1c420f07eb8940891e3ee4f32a4fc1');
INSERT INTO "journal" VALUES('golden',30,'rollback-0003',1.79565570542561125759e+09,'intent','3','{"do": "program", "title": "program 5 PUCs of mesh"}',3,'0.1.0','5719f00537d588c770adad6594b8034bef1c420f07eb8940891e3ee4f32a4fc1','c8f8eed478ca0a4b61409acd52ef3575bcfea8736034e9cb29a47b549bfdfeb2');
INSERT INTO "journal" VALUES('golden',31,'rollback-0003',1.79565570543470072743e+09,'outcome','3','{"answer": "ok 5 cells set", "cells": 5, "done": true, "revert_timer": "ours"}',3,'0.1.0','c8f8eed478ca0a4b61409acd52ef3575bcfea8736034e9cb29a47b549bfdfeb2','875ae778aec18ca34b20990afddab827926198dfd1f9266ef8e93b57bf88b1ea');
INSERT INTO "journal" VALUES('golden',32,'rollback-0003',1.79565570543477916716e+09,'intent','4','{"do": "verify", "title": "verify 1 new circuit and 0 others on the same devices"}',3,'0.1.0','875ae778aec18ca34b20990afddab827926198dfd1f9266ef8e93b57bf88b1ea','17b29956d8ce3aa7bd5edb9c03a99b3f31539e83576537980d6ef13010fadc59');
INSERT INTO "journal" VALUES('golden',33,'rollback-0003',1.79565570544934606555e+09,'outcome','4','{"done": true, "kept": 0, "proofs": [{"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g2-gpu0-a", "seconds": 0.006, "transmitter": "g1-gpu0-a"}, {"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g1-gpu0-a", "seconds": 0.006, "transmitter": "g2-gpu0-a"}]}',3,'0.1.0','17b29956d8ce3aa7bd5edb9c03a99b3f31539e83576537980d6ef13010fadc59','3d6c798e76b2a57a72f7b6a852ab488ff167f074f8cb977b233a2a5d711df5bc');
INSERT INTO "journal" VALUES('golden',34,'rollback-0003',1.79565570544940137859e+09,'intent','5','{"do": "assign", "title": "record where pair runs"}',3,'0.1.0','3d6c798e76b2a57a72f7b6a852ab488ff167f074f8cb977b233a2a5d711df5bc','9f541737c5428e2bcd53f530525f17756524a54849dfd4424377ab3084b47feb');
INSERT INTO "journal" VALUES('golden',35,'rollback-0003',1.79565570545221161839e+09,'outcome','5','{"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "done": true}',3,'0.1.0','9f541737c5428e2bcd53f530525f17756524a54849dfd4424377ab3084b47feb','6d2a2496f0b39d39b2904510a69d044c31da1fba9226e2a859cb19bd30c7ed1f');
INSERT INTO "journal" VALUES('golden',36,'rollback-0003',1.79565570545227336882e+09,'end','','{"seconds": 0.0436, "state": "done", "undid": "swap-0002"}',3,'0.1.0','6d2a2496f0b39d39b2904510a69d044c31da1fba9226e2a859cb19bd30c7ed1f','5792e584ef09b7eea85df7fbc47e0c107804492b11b73f5934403c724692284b');
INSERT INTO "journal" VALUES('golden',37,'swap-0004',1.79565570552827739716e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "swap", "plan": "bd97b99c575cd0699463045b9a19dc5f2486b5e5b87902956a5bf230672a46e3", "rack": "golden", "target": "sim", "title": "pair: replace g2-gpu0 by g3-gpu0", "who": "ops@console from 10.0.0.7"}',4,'0.1.0','5792e584ef09b7eea85df7fbc47e0c107804492b11b73f5934403c724692284b','5a656c10e51c7e3c4c98698f1dfdb9125b08bf06f9911476529abf0e2392473b');
INSERT INTO "journal" VALUES('golden',38,'swap-0004',1.79565570554814338691e+09,'intent','1','{"do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuit are sound"}',4,'0.1.0','5a656c10e51c7e3c4c98698f1dfdb9125b08bf06f9911476529abf0e2392473b','c31283d458767a6a5895b30e9dd03aea4be7b50f5b02bcf90f0589618ad84c6b');
INSERT INTO "journal" VALUES('golden',39,'swap-0004',1.79565570555830049514e+09,'outcome','1','{"done": true, "sound": {"g1-gpu0-a": "g2-gpu0-a", "g2-gpu0-a": "g1-gpu0-a"}, "transmitting": {"g2-gpu0-a": true, "g3-gpu0-a": true}}',4,'0.1.0','c31283d458767a6a5895b30e9dd03aea4be7b50f5b02bcf90f0589618ad84c6b','5db3146221ce831d69918766786416211d06bab307f8a27d6c00a80c1cea8605');
INSERT INTO "journal" VALUES('golden',40,'swap-0004',1.7956557055584280491e+09,'intent','2','{"do": "transmit", "title": "darken the transmitter of g2-gpu0-a"}',4,'0.1.0','5db3146221ce831d69918766786416211d06bab307f8a27d6c00a80c1cea8605','87ddaa6c050ba5128796fb11d36e36aec9cb52ada4e600d0b15c14d18988e7f0');
INSERT INTO "journal" VALUES('golden',41,'swap-0004',1.79565570555843114853e+09,'intent','3','{"do": "transmit", "title": "light the transmitter of g3-gpu0-a"}',4,'0.1.0','87ddaa6c050ba5128796fb11d36e36aec9cb52ada4e600d0b15c14d18988e7f0','d9843362edce48adbd213219e5d3ff10fc831121f0c9af621526f2c8117f4869');
INSERT INTO "journal" VALUES('golden',42,'swap-0004',1.79565570557087254531e+09,'outcome','2','{"done": true, "is": false, "was": true}',4,'0.1.0','d9843362edce48adbd213219e5d3ff10fc831121f0c9af621526f2c8117f4869','198204f7abe499b208e6bb2a8e53a759701b1287e12bb24d2ab84ef60fb38fe7');
INSERT INTO "journal" VALUES('golden',43,'swap-0004',1.79565570557088637353e+09,'outcome','3','{"done": true, "is": true, "was": true}',4,'0.1.0','198204f7abe499b208e6bb2a8e53a759701b1287e12bb24d2ab84ef60fb38fe7','fceb6635e6f8118202874378cd6a68776918ecbcd75f2ec66ecc3e575fe524e1');
INSERT INTO "journal" VALUES('golden',44,'swap-0004',1.79565570557169723511e+09,'intent','4','{"do": "program", "title": "program 5 PUCs of mesh"}',4,'0.1.0','fceb6635e6f8118202874378cd6a68776918ecbcd75f2ec66ecc3e575fe524e1','e266d137337bbf762ab5c24f0cf5ce282116ca69e9368c169dc39fc80321d363');
INSERT INTO "journal" VALUES('golden',45,'swap-0004',1.79565570558594942091e+09,'outcome','4','{"answer": "ok 5 cells set", "cells": 5, "done": true, "revert_timer": "ours"}',4,'0.1.0','e266d137337bbf762ab5c24f0cf5ce282116ca69e9368c169dc39fc80321d363','fa40f44365023b2322404b799a027b16d6e8e73eb6db4c574979ae3023f4534d');
INSERT INTO "journal" VALUES('golden',46,'swap-0004',1.79565570558604979513e+09,'intent','5','{"do": "verify", "title": "verify 1 new circuit and 0 others on the same devices"}',4,'0.1.0','fa40f44365023b2322404b799a027b16d6e8e73eb6db4c574979ae3023f4534d','93a7f37dc9a5e0a71494e0f87b3e7515e03ba01020649acd1eab681483332b63');
INSERT INTO "journal" VALUES('golden',47,'swap-0004',1.7956557066270332336e+09,'outcome','5','{"failed": "light was not verified within 1.0 s: g1-gpu0-a hears nobody instead of g3-gpu0-a"}',4,'0.1.0','93a7f37dc9a5e0a71494e0f87b3e7515e03ba01020649acd1eab681483332b63','376dfa438818a6bfc36afc152fed17695606b42f37ea544084cab06c76580959');
INSERT INTO "journal" VALUES('golden',48,'swap-0004',1.79565570663650202754e+09,'undo-intent','5','{"do": "verify", "title": "verify 1 new circuit and 0 others on the same devices"}',4,'0.1.0','376dfa438818a6bfc36afc152fed17695606b42f37ea544084cab06c76580959','662a073c99100b56d2aa97403353e3a4ae2474eca49f5a8bf2764a5058db3f8f');
INSERT INTO "journal" VALUES('golden',49,'swap-0004',1.79565570664805984491e+09,'undo-outcome','5','{"undone": true}',4,'0.1.0','662a073c99100b56d2aa97403353e3a4ae2474eca49f5a8bf2764a5058db3f8f','8a791e4e42465a413965591550a724bb53ec1ccbbf77e9c64de9e337865b5375');
INSERT INTO "journal" VALUES('golden',50,'swap-0004',1.79565570667030215265e+09,'undo-intent','4','{"do": "program", "title": "program 5 PUCs of mesh"}',4,'0.1.0','8a791e4e42465a413965591550a724bb53ec1ccbbf77e9c64de9e337865b5375','7c2ae913140bd506b5b403f737531abfd548c6c89ee6a6c69f41bf6b4e4b5924');
INSERT INTO "journal" VALUES('golden',51,'swap-0004',1.79565570668254470823e+09,'undo-outcome','4','{"cells": 5, "undone": true}',4,'0.1.0','7c2ae913140bd506b5b403f737531abfd548c6c89ee6a6c69f41bf6b4e4b5924','1fd7cd564f16a90af07ee6b729b6cd31437f60649e4e25d69e3393e4fc9a7ee7');
INSERT INTO "journal" VALUES('golden',52,'swap-0004',1.79565570668997144697e+09,'undo-intent','3','{"do": "transmit", "title": "light the transmitter of g3-gpu0-a"}',4,'0.1.0','1fd7cd564f16a90af07ee6b729b6cd31437f60649e4e25d69e3393e4fc9a7ee7','fafa7920eb408db9426ac48299fad4428402b374cbe7b25d4994e67921e923f1');
INSERT INTO "journal" VALUES('golden',53,'swap-0004',1.79565570669994139674e+09,'undo-outcome','3','{"is": true, "undone": true}',4,'0.1.0','fafa7920eb408db9426ac48299fad4428402b374cbe7b25d4994e67921e923f1','a5a7738ba53eb180ba27ecaa1bb505a65751f042952921ef4b51889d0439e583');
INSERT INTO "journal" VALUES('golden',54,'swap-0004',1.79565570670425915717e+09,'undo-intent','2','{"do": "transmit", "title": "darken the transmitter of g2-gpu0-a"}',4,'0.1.0','a5a7738ba53eb180ba27ecaa1bb505a65751f042952921ef4b51889d0439e583','73a0d6804f94b83261203e29258d17b690513cb5218b87c5969dfc47b6d3cd47');
INSERT INTO "journal" VALUES('golden',55,'swap-0004',1.79565570671385502815e+09,'undo-outcome','2','{"is": true, "undone": true}',4,'0.1.0','73a0d6804f94b83261203e29258d17b690513cb5218b87c5969dfc47b6d3cd47','43fb02087009f60f7da7821e3f18c6de7aa5f8080e8de74e207fde98cfe5b8a6');
INSERT INTO "journal" VALUES('golden',56,'swap-0004',1.79565570671495532985e+09,'undo-intent','1','{"do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuit are sound"}',4,'0.1.0','43fb02087009f60f7da7821e3f18c6de7aa5f8080e8de74e207fde98cfe5b8a6','5abf1b88ea3a912d3259618bb60aa8b6be135320887ef4660e280110d729f171');
INSERT INTO "journal" VALUES('golden',57,'swap-0004',1.79565570671588373187e+09,'undo-outcome','1','{"undone": true}',4,'0.1.0','5abf1b88ea3a912d3259618bb60aa8b6be135320887ef4660e280110d729f171','990a61410f7496aaa8afcad25245723fb02a7352af76966f1e15589a725ecbac');
INSERT INTO "journal" VALUES('golden',58,'swap-0004',1.79565570673794031139e+09,'end','','{"failed": "light was not verified within 1.0 s: g1-gpu0-a hears nobody instead of g3-gpu0-a", "state": "rolled-back"}',4,'0.1.0','990a61410f7496aaa8afcad25245723fb02a7352af76966f1e15589a725ecbac','64dfc17f3f49697523a10905259231fcfa3c4e6209f110501f540838fcbf4735');
INSERT INTO "journal" VALUES('golden',59,'set-0005',1.79565570677384853367e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "set", "plan": "265f998374853691c1a6d203742024ce7a33549c4a95f0f0832f4f30224936c2", "rack": "golden", "target": "sim", "title": "set g3-gpu0-a transmit=off", "who": "ops@console from 10.0.0.7"}',5,'0.1.0','64dfc17f3f49697523a10905259231fcfa3c4e6209f110501f540838fcbf4735','1783215d6a90878b5a360cee03ac3d6dbd06f9701ba28d907f62dc506950be9f');
INSERT INTO "journal" VALUES('golden',60,'set-0005',1.79565570678492259981e+09,'intent','1','{"do": "set", "title": "set g3-gpu0-a transmit=off (it shows on)"}',5,'0.1.0','1783215d6a90878b5a360cee03ac3d6dbd06f9701ba28d907f62dc506950be9f','b8f35b1b37361e8f47b749bdd1515e8aa63598e6fc845c3c2daea945a1b05721');
INSERT INTO "journal" VALUES('golden',61,'set-0005',1.7956557068078911304e+09,'outcome','1','{"done": true, "is": false, "was": true}',5,'0.1.0','b8f35b1b37361e8f47b749bdd1515e8aa63598e6fc845c3c2daea945a1b05721','79d0c6d24122765f2a97a665ccbb298e553f39a8185abf51f0867c51a8430b47');
INSERT INTO "journal" VALUES('golden',62,'set-0005',1.79565570680798244473e+09,'end','','{"seconds": 0.0231, "state": "done"}',5,'0.1.0','79d0c6d24122765f2a97a665ccbb298e553f39a8185abf51f0867c51a8430b47','ecf3b69cd246318edd0e06e21ce35509ae923ee6608f8f7ead6b8673de890ff1');
INSERT INTO "journal" VALUES('golden',63,'ack-0006',1.79565570681415343284e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "ack", "plan": "82db670b1e493140254502eef57178b499d5f6cca8c67ebd0c66b6b9b81d5d42", "rack": "golden", "target": "sim", "title": "acknowledge g2-gpu0", "who": "ops@console from 10.0.0.7"}',0,'0.1.0','ecf3b69cd246318edd0e06e21ce35509ae923ee6608f8f7ead6b8673de890ff1','7d82cddec72ac0749c6eed104d072851692936dc5ee2142f9fa1bba1f34449cc');
INSERT INTO "journal" VALUES('golden',64,'ack-0006',1.79565570681415343284e+09,'intent','1','{"do": "record", "title": "acknowledge g2-gpu0"}',0,'0.1.0','7d82cddec72ac0749c6eed104d072851692936dc5ee2142f9fa1bba1f34449cc','c7e91c684602b476e872ccddaea1172548be6c7348c7f29c0f78af5c5b9e04a7');
INSERT INTO "journal" VALUES('golden',65,'ack-0006',1.79565570681415343284e+09,'outcome','1','{"component": "g2-gpu0", "done": true, "rule": null, "was": []}',0,'0.1.0','c7e91c684602b476e872ccddaea1172548be6c7348c7f29c0f78af5c5b9e04a7','dc8ab2f49938cce17595939cd25a2a9764b1bd6e41f05761dd1346e75c0f5917');
INSERT INTO "journal" VALUES('golden',66,'ack-0006',1.79565570681415343284e+09,'end','','{"seconds": 0.0, "state": "done"}',0,'0.1.0','dc8ab2f49938cce17595939cd25a2a9764b1bd6e41f05761dd1346e75c0f5917','b5fcb16de1f027559e88c516465eedc698df27b50da86b097ca98273f028fe82');
INSERT INTO "journal" VALUES('golden',67,'maintain-0007',1.79565570682397413252e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "maintain", "plan": "9c45777e81d01ed1de9db45a7ed401e937bad1c3097625538c9fb61f175c46fc", "rack": "golden", "target": "sim", "title": "open-window g2-gpu0", "who": "ops@console from 10.0.0.7"}',0,'0.1.0','b5fcb16de1f027559e88c516465eedc698df27b50da86b097ca98273f028fe82','86ae009ae6823ee7e91bf584acf9afda37bd3069a0364a7594f8e16cbf3f27f5');
INSERT INTO "journal" VALUES('golden',68,'maintain-0007',1.79565570682397413252e+09,'intent','1','{"do": "record", "title": "open-window g2-gpu0"}',0,'0.1.0','86ae009ae6823ee7e91bf584acf9afda37bd3069a0364a7594f8e16cbf3f27f5','9f02833584ed7666e309a69a2bb4d3f278bc06926b9f8fd7feac1513aa145dac');
INSERT INTO "journal" VALUES('golden',69,'maintain-0007',1.79565570682397413252e+09,'outcome','1','{"component": "g2-gpu0", "done": true, "window": "maintenance-27852aad"}',0,'0.1.0','9f02833584ed7666e309a69a2bb4d3f278bc06926b9f8fd7feac1513aa145dac','b8aae4232ae50a1f15931de08e5ac453cb450e2471e4752dbae37b5354a4477a');
INSERT INTO "journal" VALUES('golden',70,'maintain-0007',1.79565570682397413252e+09,'end','','{"seconds": 0.0, "state": "done"}',0,'0.1.0','b8aae4232ae50a1f15931de08e5ac453cb450e2471e4752dbae37b5354a4477a','18e7ab48578eba722021eda6fcaf988282898d8d7a85c9cb34a6746a1919ee52');
INSERT INTO "journal" VALUES('golden',71,'maintain-0008',1.7956557068400287628e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "maintain", "plan": "296f5c162fc2569616c788c1310acee4375e76e1c4571534aed4c6955343fe3f", "rack": "golden", "target": "sim", "title": "end-window g2-gpu0", "who": "ops@console from 10.0.0.7"}',0,'0.1.0','18e7ab48578eba722021eda6fcaf988282898d8d7a85c9cb34a6746a1919ee52','040c54dcf7329745a939f394b88499f0ef4817edee0c637856cd264d97a48b1e');
INSERT INTO "journal" VALUES('golden',72,'maintain-0008',1.7956557068400287628e+09,'intent','1','{"do": "record", "title": "end-window g2-gpu0"}',0,'0.1.0','040c54dcf7329745a939f394b88499f0ef4817edee0c637856cd264d97a48b1e','0cb4e26362f6b0c9309f4605e52dd25014fead344fd3b7fbd498fd5220cec373');
INSERT INTO "journal" VALUES('golden',73,'maintain-0008',1.7956557068400287628e+09,'outcome','1','{"component": "g2-gpu0", "done": true, "ended": 1, "was": {"maintenance-27852aad": 1795659306.8239741}}',0,'0.1.0','0cb4e26362f6b0c9309f4605e52dd25014fead344fd3b7fbd498fd5220cec373','8845a959cd072fea444d634ea91500275feaa3c4faaa50af10a78cb2c017a897');
INSERT INTO "journal" VALUES('golden',74,'maintain-0008',1.7956557068400287628e+09,'end','','{"seconds": 0.0, "state": "done"}',0,'0.1.0','8845a959cd072fea444d634ea91500275feaa3c4faaa50af10a78cb2c017a897','83f151767f8aaaef0bb5132b4e2a07ffc08b4ddff57d8862a5c03b22decb9427');
CREATE TABLE leases (
	rack VARCHAR NOT NULL, 
	holder TEXT NOT NULL, 
	fence INTEGER NOT NULL, 
	expires_at FLOAT NOT NULL, 
	process TEXT NOT NULL, 
	PRIMARY KEY (rack)
);
INSERT INTO "leases" VALUES('golden','ops@console from 10.0.0.7',5,0.0,'{"process": {"host": "vm", "boot_id": "ad37a47b-934d-4736-9ff3-54706667e2bb:4026531836", "pid": 25062, "started": 189080}, "ends_at": 1925.841842253}');
CREATE TABLE maintenance_windows (
	id VARCHAR NOT NULL, 
	rack VARCHAR NOT NULL, 
	component VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	comment TEXT NOT NULL, 
	starts FLOAT NOT NULL, 
	ends FLOAT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "maintenance_windows" VALUES('maintenance-27852aad','golden','g2-gpu0','ops@console from 10.0.0.7','a new card',1.79565570682397413252e+09,1.7956557068400287628e+09);
CREATE TABLE meta (
	"key" VARCHAR NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "meta" VALUES('schema_version','8');
INSERT INTO "meta" VALUES('lumctl','0.1.0');
CREATE TABLE plans (
	rack VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	digest VARCHAR NOT NULL, 
	created_at FLOAT NOT NULL, 
	target VARCHAR NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (rack, id)
);
CREATE TABLE readings (
	rack VARCHAR NOT NULL, 
	hour INTEGER NOT NULL, 
	component VARCHAR NOT NULL, 
	body BLOB NOT NULL, 
	PRIMARY KEY (rack, hour, component)
);
CREATE TABLE runs (
	rack VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	target VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	title TEXT NOT NULL, 
	"plan" TEXT NOT NULL, 
	plan_digest VARCHAR NOT NULL, 
	inventory_digest VARCHAR NOT NULL, 
	who VARCHAR NOT NULL, 
	version VARCHAR NOT NULL, 
	fence INTEGER NOT NULL, 
	state VARCHAR NOT NULL, 
	started_at FLOAT NOT NULL, 
	ended_at FLOAT, 
	undone_by VARCHAR, 
	PRIMARY KEY (rack, id)
);
INSERT INTO "runs" VALUES('golden','fabric-0001','sim','fabric','program 1 circuits of golden','{"schema": "lumctl/plan/v1", "id": "plan-031eac5e", "digest": "031eac5e012099544a8ad3e29fa3fae95b3b2ad299240ba0b3103c72ef5d0f65", "kind": "fabric", "title": "program 1 circuits of golden", "rack": "golden", "target": "sim", "created_at": 1795655704.908222, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.801, "warnings": ["mesh is written whole: all it carries goes dark meanwhile"], "replacements": [], "candidates": [], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "device": "mesh", "port": 0}, {"lane": "g2-gpu0-a", "device": "mesh", "port": 5}], "segments": [{"device": "mesh", "ports": [0, 5], "pucs": [0, 1, 2, 3, 4]}], "loss_db": 3.25, "expected_rx_dbm": -1.25, "margin_db": 14.55}], "remove": [], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 0, "from": null, "to": "x"}, {"device": "mesh", "puc": 1, "from": null, "to": "x"}, {"device": "mesh", "puc": 2, "from": null, "to": "x"}, {"device": "mesh", "puc": 3, "from": null, "to": "x"}, {"device": "mesh", "puc": 4, "from": null, "to": "="}, {"device": "mesh", "puc": 5, "from": null, "to": "="}, {"device": "mesh", "puc": 6, "from": null, "to": "="}, {"device": "mesh", "puc": 7, "from": null, "to": "="}, {"device": "mesh", "puc": 8, "from": null, "to": "="}, {"device": "mesh", "puc": 9, "from": null, "to": "="}, {"device": "mesh", "puc": 10, "from": null, "to": "="}, {"device": "mesh", "puc": 11, "from": null, "to": "="}, {"device": "mesh", "puc": 12, "from": null, "to": "="}, {"device": "mesh", "puc": 13, "from": null, "to": "="}, {"device": "mesh", "puc": 14, "from": null, "to": "="}, {"device": "mesh", "puc": 15, "from": null, "to": "="}, {"device": "mesh", "puc": 16, "from": null, "to": "="}, {"device": "mesh", "puc": 17, "from": null, "to": "="}, {"device": "mesh", "puc": 18, "from": null, "to": "="}, {"device": "mesh", "puc": 19, "from": null, "to": "="}, {"device": "mesh", "puc": 20, "from": null, "to": "="}, {"device": "mesh", "puc": 21, "from": null, "to": "="}, {"device": "mesh", "puc": 22, "from": null, "to": "="}, {"device": "mesh", "puc": 23, "from": null, "to": "="}, {"device": "mesh", "puc": 24, "from": null, "to": "="}, {"device": "mesh", "puc": 25, "from": null, "to": "="}, {"device": "mesh", "puc": 26, "from": null, "to": "="}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "find which of 0 circuits are sound", "data": {"healthy": [], "kept": [], "replaced": []}, "precondition": "", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.2}, {"id": "2", "do": "program", "title": "program 27 PUCs of mesh", "data": {"device": "mesh", "changes": [[0, null, "x"], [1, null, "x"], [2, null, "x"], [3, null, "x"], [4, null, "="], [5, null, "="], [6, null, "="], [7, null, "="], [8, null, "="], [9, null, "="], [10, null, "="], [11, null, "="], [12, null, "="], [13, null, "="], [14, null, "="], [15, null, "="], [16, null, "="], [17, null, "="], [18, null, "="], [19, null, "="], [20, null, "="], [21, null, "="], [22, null, "="], [23, null, "="], [24, null, "="], [25, null, "="], [26, null, "="]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 27 states from before", "required": true, "expected_seconds": 0.101, "stage": 1}, {"id": "3", "do": "verify", "title": "verify 1 new circuit and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.5}, {"id": "4", "do": "assign", "title": "record where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "before": {"pair": ["g1-gpu0", "g2-gpu0"]}}, "precondition": "", "verification": "", "undo": "record the placement from before", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {}}}','031eac5e012099544a8ad3e29fa3fae95b3b2ad299240ba0b3103c72ef5d0f65','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',1,'done',1.7956557049476487637e+09,1.79565570500251126288e+09,NULL);
INSERT INTO "runs" VALUES('golden','swap-0002','sim','swap','pair: replace g2-gpu0 by g3-gpu0','{"schema": "lumctl/plan/v1", "id": "plan-9b7d5571", "digest": "9b7d5571800b170caf57f4a1958f749762a9464cd740579ba477d0e06240a81c", "kind": "swap", "title": "pair: replace g2-gpu0 by g3-gpu0", "rack": "golden", "target": "sim", "created_at": 1795655705.051605, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.901, "warnings": ["job pair has no hook: pause or stop it before you apply this, and resume it afterwards"], "replacements": [{"job": "pair", "rank": 1, "failed": "g2-gpu0", "spare": "g3-gpu0"}], "candidates": [{"failed": "g2-gpu0", "spare": "g3-gpu0", "chosen": true, "reasons": ["the best there is", "10 PUCs in new circuits, 5 cells to write, worst loss 4.50 dB"], "rank": 1, "score": {"reserved": 1, "memory_gib": 0.0, "lanes": 0, "tied": 0, "faults": 0, "fresh": 0, "moves": 0, "thin": 0, "loss_db": 4.5, "pucs": 10, "cells": 5, "order": 2}}], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "device": "mesh", "port": 0}, {"lane": "g3-gpu0-a", "device": "mesh", "port": 10}], "segments": [{"device": "mesh", "ports": [0, 10], "pucs": [0, 1, 2, 3, 8, 14, 19, 25, 26, 20]}], "loss_db": 4.5, "expected_rx_dbm": -2.5, "margin_db": 13.3}], "remove": [{"id": "pair/0-1", "owner": "pair", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "device": "mesh", "port": 0}, {"lane": "g2-gpu0-a", "device": "mesh", "port": 5}], "segments": [{"device": "mesh", "ports": [0, 5], "pucs": [0, 1, 2, 3, 4]}], "loss_db": 3.25, "expected_rx_dbm": -1.25, "margin_db": 14.55}], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 3, "from": "x", "to": "="}, {"device": "mesh", "puc": 8, "from": "=", "to": "x"}, {"device": "mesh", "puc": 14, "from": "=", "to": "x"}, {"device": "mesh", "puc": 19, "from": "=", "to": "x"}, {"device": "mesh", "puc": 20, "from": "=", "to": "x"}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuit are sound", "data": {"healthy": ["g3-gpu0"], "kept": [], "replaced": ["pair/0-1"]}, "precondition": "a fresh reading says ok", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.2}, {"id": "2", "do": "transmit", "title": "darken the transmitter of g2-gpu0-a", "data": {"transponder": "g2-gpu0-a", "enabled": false}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": false, "expected_seconds": 0.1, "stage": 1}, {"id": "3", "do": "transmit", "title": "light the transmitter of g3-gpu0-a", "data": {"transponder": "g3-gpu0-a", "enabled": true}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": true, "expected_seconds": 0.1, "stage": 1}, {"id": "4", "do": "program", "title": "program 5 PUCs of mesh", "data": {"device": "mesh", "changes": [[3, "x", "="], [8, "=", "x"], [14, "=", "x"], [19, "=", "x"], [20, "=", "x"]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 5 states from before", "required": true, "expected_seconds": 0.101, "stage": 2}, {"id": "5", "do": "verify", "title": "verify 1 new circuit and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.5}, {"id": "6", "do": "assign", "title": "record where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "before": {"pair": ["g1-gpu0", "g2-gpu0"]}}, "precondition": "", "verification": "", "undo": "record the placement from before", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {"mesh": [0, 1, 2, 3]}}, "why": ["g3-gpu0 takes the place of g2-gpu0: there is no other spare"]}','9b7d5571800b170caf57f4a1958f749762a9464cd740579ba477d0e06240a81c','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',2,'undone',1.79565570522443628312e+09,1.79565570531231141087e+09,'rollback-0003');
INSERT INTO "runs" VALUES('golden','rollback-0003','sim','rollback','take back swap-0002 (pair: replace g2-gpu0 by g3-gpu0)','{"schema": "lumctl/plan/v1", "id": "plan-2e934be4", "digest": "2e934be4abe99a88b6dee5ac6aa2213be091edbad1031a09dd32c5f757942409", "kind": "rollback", "title": "take back swap-0002 (pair: replace g2-gpu0 by g3-gpu0)", "rack": "golden", "target": "sim", "created_at": 1795655705.359384, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": "swap-0002", "expected_seconds": 0.901, "warnings": ["job pair has no hook: pause or stop it before you apply this, and resume it afterwards"], "replacements": [], "candidates": [], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "device": "mesh", "port": 0}, {"lane": "g2-gpu0-a", "device": "mesh", "port": 5}], "segments": [{"device": "mesh", "ports": [0, 5], "pucs": [0, 1, 2, 3, 4]}], "loss_db": 3.25, "expected_rx_dbm": -1.25, "margin_db": 14.55}], "remove": [{"id": "pair/0-1", "owner": "pair", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "device": "mesh", "port": 0}, {"lane": "g3-gpu0-a", "device": "mesh", "port": 10}], "segments": [{"device": "mesh", "ports": [0, 10], "pucs": [0, 1, 2, 3, 8, 14, 19, 25, 26, 20]}], "loss_db": 4.5, "expected_rx_dbm": -2.5, "margin_db": 13.3}], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 3, "from": "=", "to": "x"}, {"device": "mesh", "puc": 8, "from": "x", "to": "="}, {"device": "mesh", "puc": 14, "from": "x", "to": "="}, {"device": "mesh", "puc": 19, "from": "x", "to": "="}, {"device": "mesh", "puc": 20, "from": "x", "to": "="}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "find which of 1 circuit are sound", "data": {"healthy": [], "kept": [], "replaced": ["pair/0-1"]}, "precondition": "", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.2}, {"id": "2", "do": "transmit", "title": "light the transmitter of g2-gpu0-a", "data": {"transponder": "g2-gpu0-a", "enabled": true}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": false, "expected_seconds": 0.1, "stage": 1}, {"id": "3", "do": "program", "title": "program 5 PUCs of mesh", "data": {"device": "mesh", "changes": [[3, "=", "x"], [8, "x", "="], [14, "x", "="], [19, "x", "="], [20, "x", "="]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 5 states from before", "required": true, "expected_seconds": 0.101, "stage": 2}, {"id": "4", "do": "verify", "title": "verify 1 new circuit and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.5}, {"id": "5", "do": "assign", "title": "record where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "before": {"pair": ["g1-gpu0", "g3-gpu0"]}}, "precondition": "", "verification": "", "undo": "record the placement from before", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "crosses": {"mesh": [0, 1, 2, 8, 14, 19, 20]}}}','2e934be4abe99a88b6dee5ac6aa2213be091edbad1031a09dd32c5f757942409','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',3,'done',1.79565570539800810814e+09,1.79565570545227336882e+09,NULL);
INSERT INTO "runs" VALUES('golden','swap-0004','sim','swap','pair: replace g2-gpu0 by g3-gpu0','{"schema": "lumctl/plan/v1", "id": "plan-bd97b99c", "digest": "bd97b99c575cd0699463045b9a19dc5f2486b5e5b87902956a5bf230672a46e3", "kind": "swap", "title": "pair: replace g2-gpu0 by g3-gpu0", "rack": "golden", "target": "sim", "created_at": 1795655705.4900246, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.137, "warnings": ["job pair has no hook: pause or stop it before you apply this, and resume it afterwards"], "replacements": [{"job": "pair", "rank": 1, "failed": "g2-gpu0", "spare": "g3-gpu0"}], "candidates": [{"failed": "g2-gpu0", "spare": "g3-gpu0", "chosen": true, "reasons": ["the best there is", "10 PUCs in new circuits, 5 cells to write, worst loss 4.50 dB"], "rank": 1, "score": {"reserved": 1, "memory_gib": 0.0, "lanes": 0, "tied": 0, "faults": 0, "fresh": 0, "moves": 0, "thin": 0, "loss_db": 4.5, "pucs": 10, "cells": 5, "order": 2}}], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "device": "mesh", "port": 0}, {"lane": "g3-gpu0-a", "device": "mesh", "port": 10}], "segments": [{"device": "mesh", "ports": [0, 10], "pucs": [0, 1, 2, 3, 8, 14, 19, 25, 26, 20]}], "loss_db": 4.5, "expected_rx_dbm": -2.5, "margin_db": 13.3}], "remove": [{"id": "pair/0-1", "owner": "pair", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "device": "mesh", "port": 0}, {"lane": "g2-gpu0-a", "device": "mesh", "port": 5}], "segments": [{"device": "mesh", "ports": [0, 5], "pucs": [0, 1, 2, 3, 4]}], "loss_db": 3.25, "expected_rx_dbm": -1.25, "margin_db": 14.55}], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 3, "from": "x", "to": "="}, {"device": "mesh", "puc": 8, "from": "=", "to": "x"}, {"device": "mesh", "puc": 14, "from": "=", "to": "x"}, {"device": "mesh", "puc": 19, "from": "=", "to": "x"}, {"device": "mesh", "puc": 20, "from": "=", "to": "x"}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuit are sound", "data": {"healthy": ["g3-gpu0"], "kept": [], "replaced": ["pair/0-1"]}, "precondition": "a fresh reading says ok", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.0132}, {"id": "2", "do": "transmit", "title": "darken the transmitter of g2-gpu0-a", "data": {"transponder": "g2-gpu0-a", "enabled": false}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": false, "expected_seconds": 0.1, "stage": 1}, {"id": "3", "do": "transmit", "title": "light the transmitter of g3-gpu0-a", "data": {"transponder": "g3-gpu0-a", "enabled": true}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": true, "expected_seconds": 0.1, "stage": 1}, {"id": "4", "do": "program", "title": "program 5 PUCs of mesh", "data": {"device": "mesh", "changes": [[3, "x", "="], [8, "=", "x"], [14, "=", "x"], [19, "=", "x"], [20, "=", "x"]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 5 states from before", "required": true, "expected_seconds": 0.0068, "stage": 2}, {"id": "5", "do": "verify", "title": "verify 1 new circuit and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.0146}, {"id": "6", "do": "assign", "title": "record where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "before": {"pair": ["g1-gpu0", "g2-gpu0"]}}, "precondition": "", "verification": "", "undo": "record the placement from before", "required": true, "expected_seconds": 0.0028}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {"mesh": [0, 1, 2, 3]}}, "why": ["g3-gpu0 takes the place of g2-gpu0: there is no other spare"], "measured": {"1": 3, "4": 3, "5": 3, "6": 3}}','bd97b99c575cd0699463045b9a19dc5f2486b5e5b87902956a5bf230672a46e3','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',4,'rolled-back',1.79565570552827739716e+09,1.79565570673794031139e+09,NULL);
INSERT INTO "runs" VALUES('golden','set-0005','sim','set','set g3-gpu0-a transmit=off','{"schema": "lumctl/plan/v1", "id": "plan-265f9983", "digest": "265f998374853691c1a6d203742024ce7a33549c4a95f0f0832f4f30224936c2", "kind": "set", "title": "set g3-gpu0-a transmit=off", "rack": "golden", "target": "sim", "created_at": 1795655706.762248, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.1, "warnings": [], "replacements": [], "candidates": [], "circuits": {"add": [], "remove": [], "keep": []}, "puc_changes": [], "join_changes": [], "steps": [{"id": "1", "do": "set", "title": "set g3-gpu0-a transmit=off (it shows on)", "data": {"component": "g3-gpu0-a", "setting": "transmit", "before": true, "after": false, "disturbs": []}, "precondition": "g3-gpu0-a shows transmit=on", "verification": "read back", "undo": "set transmit=on", "required": true, "expected_seconds": 0.1}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {}}}','265f998374853691c1a6d203742024ce7a33549c4a95f0f0832f4f30224936c2','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',5,'done',1.79565570677384853367e+09,1.79565570680798244473e+09,NULL);
INSERT INTO "runs" VALUES('golden','ack-0006','sim','ack','acknowledge g2-gpu0','{"id": "plan-82db670b", "digest": "82db670b1e493140254502eef57178b499d5f6cca8c67ebd0c66b6b9b81d5d42", "schema": "lumctl/plan/v1", "kind": "ack", "title": "acknowledge g2-gpu0", "rack": "golden", "target": "sim", "created_at": 1795655706.8141534, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.0, "warnings": [], "replacements": [], "candidates": [], "circuits": {"add": [], "remove": [], "keep": []}, "puc_changes": [], "join_changes": [], "steps": [{"id": "1", "do": "record", "title": "acknowledge g2-gpu0", "data": {"rack": "golden", "component": "g2-gpu0", "act": "acknowledge", "rule": null, "comment": "the vendor is called", "for_s": 7200.0}, "precondition": "", "verification": "", "undo": "the opposite is said", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {}, "crosses": {}}}','82db670b1e493140254502eef57178b499d5f6cca8c67ebd0c66b6b9b81d5d42','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',0,'done',1.79565570681415343284e+09,1.79565570681415343284e+09,NULL);
INSERT INTO "runs" VALUES('golden','maintain-0007','sim','maintain','open-window g2-gpu0','{"id": "plan-9c45777e", "digest": "9c45777e81d01ed1de9db45a7ed401e937bad1c3097625538c9fb61f175c46fc", "schema": "lumctl/plan/v1", "kind": "maintain", "title": "open-window g2-gpu0", "rack": "golden", "target": "sim", "created_at": 1795655706.8239741, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.0, "warnings": [], "replacements": [], "candidates": [], "circuits": {"add": [], "remove": [], "keep": []}, "puc_changes": [], "join_changes": [], "steps": [{"id": "1", "do": "record", "title": "open-window g2-gpu0", "data": {"rack": "golden", "component": "g2-gpu0", "act": "open-window", "comment": "a new card", "starts_in_s": 0.0, "for_s": 3600.0}, "precondition": "", "verification": "", "undo": "the opposite is said", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {}, "crosses": {}}}','9c45777e81d01ed1de9db45a7ed401e937bad1c3097625538c9fb61f175c46fc','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',0,'done',1.79565570682397413252e+09,1.79565570682397413252e+09,NULL);
INSERT INTO "runs" VALUES('golden','maintain-0008','sim','maintain','end-window g2-gpu0','{"id": "plan-296f5c16", "digest": "296f5c162fc2569616c788c1310acee4375e76e1c4571534aed4c6955343fe3f", "schema": "lumctl/plan/v1", "kind": "maintain", "title": "end-window g2-gpu0", "rack": "golden", "target": "sim", "created_at": 1795655706.8400288, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.0, "warnings": [], "replacements": [], "candidates": [], "circuits": {"add": [], "remove": [], "keep": []}, "puc_changes": [], "join_changes": [], "steps": [{"id": "1", "do": "record", "title": "end-window g2-gpu0", "data": {"rack": "golden", "component": "g2-gpu0", "act": "end-window"}, "precondition": "", "verification": "", "undo": "the opposite is said", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {}, "crosses": {}}}','296f5c162fc2569616c788c1310acee4375e76e1c4571534aed4c6955343fe3f','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',0,'done',1.7956557068400287628e+09,1.7956557068400287628e+09,NULL);
CREATE TABLE transitions (
	rack VARCHAR NOT NULL, 
	seq INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	component VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	"before" VARCHAR, 
	"after" VARCHAR NOT NULL, 
	rules TEXT NOT NULL, 
	evidence TEXT NOT NULL, 
	PRIMARY KEY (rack, seq)
);
CREATE INDEX entries_of_a_run ON journal (rack, run);
CREATE INDEX entries_of_a_kind ON journal (rack, kind);
CREATE INDEX ix_maintenance_windows_rack ON maintenance_windows (rack);
CREATE INDEX ix_demands_state ON demands (state);
CREATE INDEX transitions_of_a_component ON transitions (rack, component, seq);
COMMIT;
